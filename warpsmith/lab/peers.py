"""Old path: records hash files that import it. New files import from `warpsmith`."""

from warpsmith import Peer as Peer
