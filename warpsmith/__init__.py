"""Warpsmith: the agent proposes, the lab decides."""

__version__ = "0.1.0"

TYPE_CHECKING = False  # as in `typing`, which hooks need not import
if TYPE_CHECKING:
    from warpsmith.use.operator import best as best


def __getattr__(name: str) -> object:
    """`best`, imported when somebody asks for it: `import warpsmith` stays light."""
    if name == "best":
        from warpsmith.use.operator import best

        return best
    raise AttributeError(f"module `warpsmith` has no attribute `{name}`")
