"""The forms that agents answer in."""
