"""`python -m warpsmith`: the command, where the package is on the path but not installed."""

from warpsmith.cli.main import main

main()
