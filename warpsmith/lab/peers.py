"""Old path of `warpsmith.Peer`, which definitions on disk import."""

from warpsmith import Peer as Peer
