"""Build of the site: every page, the records that they cite, the search index, and the folder that holds them."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from importlib.resources import files as package_files
from pathlib import Path

from warpsmith import files
from warpsmith.campaign.history.store import Campaign
from warpsmith.errors import Misuse
from warpsmith.project import Project
from warpsmith.site.addresses import SiteMap
from warpsmith.site.citation import RECORD_PAGE, Archive
from warpsmith.site.contents import read_history
from warpsmith.site.context import SiteContext, read_context
from warpsmith.site.page import SitePage, build_page
from warpsmith.site.pages import calibration, campaigns, front, hardware, knowledge, operators, programs
from warpsmith.site.record_copies import PACKED, add_record_table, linked_copies, pack_record
from warpsmith.site.search_index import search_script

STYLE, SCRIPT, INDEX = "site.css", "site.js", "search-index.js"
"""Files beside the front page."""

LISTING = "site.json"
"""File that lists every other file of a site, and every record, with its hash; a folder without it is no site."""


@dataclass(frozen=True)
class Site:
    """A site, not yet written."""

    contents: dict[str, bytes]
    """Files by path."""
    pages: tuple[SitePage, ...]
    """Its pages."""
    problems: tuple[str, ...]
    """Files of the project that do not read, one sentence each."""


def build_site(project: Project) -> Site:
    """Build the site of a project; a file that does not read is named and never stops the rest."""
    context = read_context(project)
    pages = _pages(context)
    texts = [text for page in pages for text in page.found_by]
    archive = context.contents.archive
    html_by_address = {page.address: add_record_table(page.html, archive, page.address) for page in pages}
    contents = {address: html.encode() for address, html in html_by_address.items()}
    records = {copy: archive.contents[copy] for copy in sorted(linked_copies(html_by_address.values()))}
    contents |= {copy + PACKED: pack_record(data) for copy, data in records.items()}
    contents |= {STYLE: read_asset(STYLE).encode(), SCRIPT: read_asset(SCRIPT).encode()}
    contents[INDEX] = search_script(texts, context.synonyms).encode()
    contents[LISTING] = _listing(contents, records).encode()
    return Site(contents, tuple(pages), tuple(dict.fromkeys(context.contents.problems)))


def write_site(site: Site, folder: Path) -> None:
    """Write a site into a folder, in the place of an earlier site.

    Raises:
        Misuse: the folder holds something else than a site.
    """
    refuse_foreign_files(folder)
    files.replace_folder(site.contents, folder)


def refuse_foreign_files(folder: Path) -> None:
    """Refuse a folder that holds a file that no build of a site has put there.

    Raises:
        Misuse: it does, or it is a file.
    """
    if not folder.exists() and not folder.is_symlink():
        return
    if folder.is_symlink() or not folder.is_dir():
        raise Misuse(f"{folder} is not a folder; name another with --out.")
    present = {
        path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir() or path.is_symlink()
    }
    listed = _listed(folder / LISTING)
    foreign = sorted(present - listed)
    if foreign:
        others = f" and {len(foreign) - 1} more" if len(foreign) > 1 else ""
        raise Misuse(
            f"{folder} holds `{foreign[0]}`{others}, which no build of a site has written; name another folder"
            " with --out."
        )


def campaign_report(campaign: Campaign) -> str:
    """Return the page of one campaign as a single file of HTML.

    Raises:
        CorruptRecord: a record of the campaign is corrupt.
    """
    campaign.records()  # a report that is sent to others leaves nothing out
    archive = Archive(campaign.project)
    history = read_history(archive, campaign)
    where = SiteMap(campaign.project, archive, is_single_file=True)
    html = campaigns.campaign_file(where, history, read_asset(STYLE), read_asset(SCRIPT))
    return add_record_table(html, archive, None)


def read_asset(name: str) -> str:
    """Return a file of the package that pages need."""
    return (package_files("warpsmith.site") / "assets" / name).read_text(encoding="utf-8")


def _pages(context: SiteContext) -> list[SitePage]:
    program_pages, lines = programs.program_pages(context)
    inner = [
        *(page for op in context.contents.operators for page in operators.operator_pages(context, op)),
        *(campaigns.campaign_page(context, history) for history in context.contents.campaigns),
        *program_pages,
        *knowledge.entry_pages(context),
        *knowledge.symptom_rule_pages(context),
        knowledge.knowledge_page(context),
        knowledge.symptoms_page(context),
        *hardware.hardware_pages(context),
        calibration.trust_page(context),
        front.campaigns_page(context, lines),
        build_page("record", RECORD_PAGE, title="Record"),
    ]
    return [front.front_page(context), *inner]  # last built: it names what the others could not read


def _listing(contents: dict[str, bytes], records: dict[str, bytes]) -> str:
    listing = {"files": _hashes(contents), "records": _hashes(records)}
    return json.dumps(listing, indent=0, sort_keys=True) + "\n"


def _hashes(contents: dict[str, bytes]) -> dict[str, str]:
    return {name: hashlib.sha256(data).hexdigest() for name, data in contents.items()}


def _listed(path: Path) -> set[str]:
    """Return the files that a folder's listing names, and the listing; none if there is no listing."""
    try:
        return {*json.loads(path.read_text())["files"], LISTING}
    except (OSError, ValueError, KeyError, TypeError):
        return set()
