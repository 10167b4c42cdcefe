"""Expected pages: the text of every page that is rendered from records, as rendering gives it now.

Where the files of a campaign have the contents that they had when its pages were rendered last, the hashes of the
pages are known, and a page on disk with that hash is its own expected text. Everything else is rendered, one
campaign at a time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from warpsmith.campaign.evidence.contents import ContentHashes, recall, remember
from warpsmith.campaign.history import manifests
from warpsmith.core.base import Model, Sha256
from warpsmith.errors import CorruptRecord
from warpsmith.project import Project
from warpsmith.reporting.overview import CampaignRow

RenderCampaign = Callable[[Project, Path], tuple[CampaignRow, dict[Path, str]]]
"""Function of a project and a campaign's folder that returns its row for overviews, and its pages."""
RenderOverviews = Callable[[Project, Sequence[CampaignRow], str], dict[Path, str]]
"""Function of a project, all rows and the reason for missing plots that returns the pages over all campaigns."""


class PageHashes(Model):
    """Hashes of rendered pages."""

    pages: dict[str, Sha256]
    """Hash of the text by the page's file."""


class ExpectedPages(Mapping[Path, str]):
    """Texts of pages by their files; a text is rendered when it is asked for and not on disk."""

    def __init__(
        self,
        project: Project,
        contents: ContentHashes,
        plots_missing: str,
        render_campaign: RenderCampaign,
        render_overviews: RenderOverviews,
    ) -> None:
        """Find out the hashes of all pages; those of campaigns that changed are rendered for it."""
        self._project, self._plots_missing = project, plots_missing
        self._render_campaign, self._render_overviews = render_campaign, render_overviews
        self._folders = manifests.campaign_folders(project)
        self._rows: dict[Path, CampaignRow] = {}
        self._last: tuple[Path, dict[Path, str]] = (project.root, {})
        self._hashes: dict[Path, str] = {}
        self._owners: dict[Path, Path] = {}
        states = {folder: contents.state_of(folder) for folder in self._folders}
        recalled = recall(project, "pages", states, PageHashes)
        damaged = []
        for folder in self._folders:
            hashes = recalled.get(folder)
            if hashes is None:
                try:
                    hashes = _hash_pages(self._campaign_pages(folder))
                except CorruptRecord:  # its manifest does not read
                    damaged.append(folder)
                    continue
                remember(project, "pages", states, {folder: hashes})
            self._add(folder, hashes)
        if damaged:
            return
        states = {project.devlog: contents.state(plots_missing)}
        shared = recall(project, "overviews", states, PageHashes).get(project.devlog)
        if shared is None:
            shared = _hash_pages(self._shared_pages())
            remember(project, "overviews", states, {project.devlog: shared})
        self._add(project.devlog, shared)
        self._rows.clear()  # of thousands of rounds; a page that is asked for reads them again
        self._last = (project.root, {})

    def __iter__(self) -> Iterator[Path]:
        return iter(self._hashes)

    def __len__(self) -> int:
        return len(self._hashes)

    def __getitem__(self, path: Path) -> str:
        data = path.read_bytes() if self._hashes[path] and path.is_file() else b""
        if hashlib.sha256(data).hexdigest() == self._hashes[path]:
            return data.decode()
        owner = self._owners[path]
        pages = self._shared_pages() if owner == self._project.devlog else self._campaign_pages(owner)
        return pages.get(path, "")  # its record was moved away meanwhile

    def _add(self, owner: Path, hashes: PageHashes) -> None:
        for name, sha256 in hashes.pages.items():
            self._hashes[Path(name)] = sha256
            self._owners[Path(name)] = owner

    def _campaign_pages(self, folder: Path) -> dict[Path, str]:
        if self._last[0] != folder:
            self._rows[folder], pages = self._render_campaign(self._project, folder)
            self._last = (folder, pages)
        return self._last[1]

    def _shared_pages(self) -> dict[Path, str]:
        if self._last[0] != self._project.devlog:
            for folder in self._folders:
                if folder not in self._rows:
                    self._campaign_pages(folder)
            rows = [self._rows[folder] for folder in self._folders]
            self._last = (self._project.devlog, self._render_overviews(self._project, rows, self._plots_missing))
        return self._last[1]


def _hash_pages(pages: Mapping[Path, str]) -> PageHashes:
    return PageHashes(pages={str(path): hashlib.sha256(text.encode()).hexdigest() for path, text in pages.items()})
