"""The campaign that is worked on, told by files."""

from __future__ import annotations

import os

from warpsmith.hooks import open_work


def test_the_current_campaign(project, monkeypatch):
    monkeypatch.delenv("WARPSMITH_CAMPAIGN", raising=False)
    assert open_work.current_campaign(project) is None
    for changed, name in enumerate(("oldest", "older", "closed"), 1):
        folder = project.devlog / "scale" / name
        folder.mkdir(parents=True)
        (folder / "manifest.yaml").write_text("")
        if name == "closed":
            (folder / "closed.json").write_text("{}")
        os.utime(folder, (changed, changed))

    def current(name: str) -> str:
        monkeypatch.setenv("WARPSMITH_CAMPAIGN", name)
        view = open_work.current_campaign(project)
        return view.name if view else ""

    assert [current(name) for name in ("", "older", "oldest", "closed")] == ["older", "older", "oldest", ""]
