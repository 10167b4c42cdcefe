"""Rows of a table, as a newcomer writes it: two sizes, no odd ones."""

from warpsmith.core.definition import Definition, TensorSpec, Workload


def at(count, vocab, width):
    return Workload(
        name=f"{count}x{vocab}x{width}", axes={"count": count, "vocab": vocab, "width": width}
    )


definition = Definition(
    name="embed",
    description="y[i] = table[ids[i]]",
    op_type="gather",
    axes={"count": "tokens", "vocab": "rows of the table", "width": "elements of a row"},
    inputs={
        "table": TensorSpec(shape=("vocab", "width")),
        "ids": TensorSpec(shape=("count",), dtype="int64", distribution="integers:0:vocab"),
    },
    outputs={"y": TensorSpec(shape=("count", "width"))},
    flops="0",
    workloads=(at(2000, 8000, 64), at(500, 1000, 128)),
)


def reference(table, ids):
    return table[ids]
