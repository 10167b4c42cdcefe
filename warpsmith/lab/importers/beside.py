"""Old path: definitions that were imported before name it. New files import from `warpsmith`."""

from warpsmith import beside as beside
