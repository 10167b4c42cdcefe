"""Balances after some bookings, each of an amount to an account."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Workload

definition = Definition(
    name="bucket_totals",
    description="totals = balances, and the amounts that are booked to each of them",
    op_type="scatter",
    axes={"bookings": "bookings", "accounts": "accounts"},
    inputs={
        "account": TensorSpec(shape=("bookings",), dtype="int64", distribution="integers:0:accounts"),
        "amount": TensorSpec(shape=("bookings",), dtype="int32", distribution="integers:0:1000"),
        "balance": TensorSpec(shape=("accounts",), dtype="int64", distribution="integers:0:1000000000000"),
    },
    outputs={"totals": TensorSpec(shape=("accounts",), dtype="int64")},
    deterministic=True,
    flops="bookings",
    workloads=(
        Workload(name="20000x300", axes={"bookings": 20000, "accounts": 300}),
        Workload(name="5000x1000", axes={"bookings": 5000, "accounts": 1000}),
    ),
)


def reference(account: torch.Tensor, amount: torch.Tensor, balance: torch.Tensor) -> torch.Tensor:
    return balance.scatter_add(0, account, amount.long())
