"""The fixtures of this folder; what they are made of stands in `campaign_kit`."""

from campaign_kit import campaign, project, toy_language

__all__ = ["campaign", "project", "toy_language"]
