"""The loop without a person: it follows `next` and asks a designer where a step needs one."""
