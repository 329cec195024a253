"""Pages of a HAR file: sizes, pages in turn, think times, and files that are none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from netwarp.core.errors import SpecError
from netwarp.core.types import Flow
from netwarp.experiment.page_flows import read_har
from netwarp.measure.groups.pages import objects_of_pages
from netwarp.plan import make_plan
from support.specs import replaced, spec_of

PAGE = 'page = { har = "site.har"%s }'


def entry(page: str, second: float, **response: Any) -> dict[str, Any]:
    return {
        "pageref": page,
        "startedDateTime": f"2026-11-23T02:00:{second:06.3f}+01:00",
        "response": {"content": {"size": 7}, **response},
    }


def archive(**more: Any) -> dict[str, Any]:
    """Two pages; the second is written first, its HTML behind an object."""
    pages = [
        {"id": "b", "startedDateTime": "2026-11-23T02:00:30Z", "pageTimings": {"onLoad": 900}},
        {"id": "a", "startedDateTime": "2026-11-23T03:00:10+01:00", "pageTimings": {"onLoad": 1500}},
    ]
    entries = [
        entry("b", 30.2, bodySize=50, headersSize=20),
        entry("b", 30.0, bodySize=4000, headersSize=-1),
        entry("a", 10.0, bodySize=100, headersSize=300),
        entry("a", 10.1, bodySize=-1, headersSize=-1),
        entry("a", 10.2, bodySize=9, headersSize=9, _transferSize=555),
        entry("a", 10.3, bodySize=0, headersSize=0),
    ]
    return {"log": {"version": "1.2", "pages": pages, "entries": entries, **more}}


def flow_of(folder: Path, har: object, more: str = "", protocol: str = "tcp") -> Flow:
    (folder / "site.har").write_text(har if isinstance(har, str) else json.dumps(har))
    text = replaced('protocol = "tcp"', f'protocol = "{protocol}"\n{PAGE % more}')
    return make_plan(spec_of(text, folder)).cells[0].flows[0]


def test_sizes_are_what_came_over_the_network() -> None:
    first, second = read_har(json.dumps(archive()).encode())
    assert (first.html_bytes, first.object_bytes) == (400, (7, 555)), "what came from a cache is no object"
    assert (second.html_bytes, second.object_bytes) == (4000, (70,))
    assert (first.think_ns, second.think_ns) == (18_500_000_000, None)


def test_an_unknown_end_of_loading_is_no_time() -> None:
    har = archive()
    har["log"]["pages"][1]["pageTimings"] = {"onLoad": -1}
    assert read_har(json.dumps(har).encode())[0].think_ns == 20_000_000_000


def test_an_end_of_loading_beyond_all_times_leaves_no_time_to_think() -> None:
    har = archive()
    har["log"]["pages"][1]["pageTimings"] = {"onLoad": 1e308}
    assert [page.think_ns for page in read_har(json.dumps(har).encode())] == [0, None]


def test_an_archive_without_pages_is_one_page() -> None:
    (page,) = read_har(json.dumps(archive(pages=[])).encode())
    assert (page.html_bytes, len(page.object_bytes), page.think_ns) == (400, 4, None)


def test_its_pages_take_turns(tmp_path: Path) -> None:
    flow = flow_of(tmp_path, archive(), ", pages = 5, connections = 2")
    client = flow.receiver_options
    assert (client["html_bytes"], client["object_bytes"], client["page_objects"]) == ("400,4000", "7,555,70", "2,1")
    assert client["think_ns"] == "18500000000,18500000000", "after the last as long as on the mean"
    assert flow.sender_options["expected"] == 2 + 1 + 2 + 1 + 2
    assert objects_of_pages(client) == [3, 2]
    assert flow_of(tmp_path, archive(), ', think = "1 s"').receiver_options["think_ns"] == 10**9
    assert flow_of(tmp_path, archive()).receiver_options["pages"] == 2
    assert flow_of(tmp_path, archive(), protocol="sctp").receiver_options["streams"] == 3


def test_the_spec_keeps_the_file(tmp_path: Path) -> None:
    (tmp_path / "site.har").write_text(json.dumps(archive()))
    spec = spec_of(replaced('protocol = "tcp"', f'protocol = "tcp"\n{PAGE % ""}'), tmp_path)
    assert list(spec.files) == ["spec.toml", "site.har"]


@pytest.mark.parametrize(
    ("har", "said"),
    [
        ("{", "is no HAR 1.2"),
        ('{"log": {"entries": [{}]}}', "startedDateTime"),
        ('{"log": {"entries": [{"startedDateTime": "2026-11-23T02:00:00", "response": {}}]}}', "timezone"),
        (archive(entries=[]), "no page with a response of known size"),
        (archive(entries=[entry("a", 1, bodySize=1 << 24)]), "an object of 16777216 B"),
        (archive(entries=[entry("a", 1, bodySize=9 * 10**4299, headersSize=9 * 10**4299)]), "is no HAR 1.2"),
        (archive(entries=[entry("a", 1 + i / 1000, bodySize=5) for i in range(300)]), "has 299 objects"),
    ],
)
def test_files_that_cannot_be_used(tmp_path: Path, har: object, said: str) -> None:
    with pytest.raises(SpecError, match=said):
        flow_of(tmp_path, har)


@pytest.mark.parametrize("name", ["other.har", "../site.har", "site.json"])
def test_the_file_stands_beside_the_spec(tmp_path: Path, name: str) -> None:
    (tmp_path / "site.har").write_text(json.dumps(archive()))
    text = replaced('protocol = "tcp"', f'protocol = "tcp"\npage = {{ har = "{name}" }}')
    with pytest.raises(SpecError, match=r"is no \.har file beside the spec"):
        make_plan(spec_of(text, tmp_path))


@pytest.mark.parametrize("pages", ["{}", "[]", "[1]", "[[1]]", '[["1 kB", 2]]'])
def test_a_list_that_no_file_became_is_refused(tmp_path: Path, pages: str) -> None:
    with pytest.raises(SpecError, match="has to stand where the page is written"):
        make_plan(spec_of(replaced('protocol = "tcp"', f'protocol = "tcp"\npage = {{ har = {pages} }}'), tmp_path))
