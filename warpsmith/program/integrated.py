"""Old path: records hash files that import it. New files import from `warpsmith`."""

from warpsmith.program.operators.integrated import enable as enable
