"""Old path: records hash files that import it. New files import from `warpsmith`."""

from warpsmith.lab.operator.peers import Peer as Peer
