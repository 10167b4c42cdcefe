"""Uplift: does an agent with Warpsmith make faster kernels than the same agent without?"""
