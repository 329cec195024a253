"""Pages as HAR 1.2: the fields its specification demands, and times that add up."""

from __future__ import annotations

import datetime
import json
from typing import Any

import jsonschema
import pytest
import referencing
from netwarp.engine.export import har_of
from netwarp.experiment.page_flows import read_har
from netwarp.store.derived import PageObject
from support.checkout import ROOT
from support.specs import plan_of, replaced

T0_NS = 1_700_000_000 * 10**9
PAGE = 'page = { html = "2 kB", objects = { count = 2, size = "1 kB" }, pages = 2 }'
ENTRY = {
    "startedDateTime", "time", "request", "response", "cache", "timings",
}  # fmt: skip
REQUEST = {"method", "url", "httpVersion", "cookies", "headers", "queryString", "headersSize", "bodySize"}
RESPONSE = {
    "status", "statusText", "httpVersion", "cookies", "headers", "content", "redirectURL", "headersSize", "bodySize",
}  # fmt: skip


def validator_of(name: str) -> jsonschema.Draft6Validator:
    """A validator by a schema of tests/data/har-schema, dates checked."""
    schemas = {path.name: json.loads(path.read_bytes()) for path in (ROOT / "tests/data/har-schema").glob("*.json")}
    draft6 = referencing.jsonschema.DRAFT6
    known = [(schema["$id"].rstrip("#"), draft6.create_resource(schema)) for schema in schemas.values()]
    registry: referencing.Registry[Any] = referencing.Registry().with_resources(known)
    checker = jsonschema.FormatChecker()
    checker.checks("date-time", raises=ValueError)(lambda text: bool(datetime.datetime.fromisoformat(text)))
    return jsonschema.Draft6Validator(schemas[name], registry=registry, format_checker=checker)


def times(page: int, number: int, requested: float, *, port: int, opened: float) -> PageObject:
    return PageObject(
        page=page, object=number, port=port, stream=0, bytes=1000, opened_s=opened, requested_s=requested,
        first_s=requested + 0.1, complete_s=requested + 0.2, delivered_s=requested + 0.3, told_s=requested + 0.3,
    )  # fmt: skip


@pytest.fixture(scope="module")
def log() -> dict[str, Any]:
    cell = plan_of(replaced('protocol = "tcp"', f'protocol = "tcp"\n{PAGE}')).cells[0]
    objects = [
        times(0, 0, 1.1, port=40000, opened=1.0),
        times(0, 1, 1.4, port=40000, opened=1.0),
        times(0, 2, 1.5, port=40001, opened=1.4),
        times(1, 0, 3.1, port=40002, opened=3.0),
        times(1, 1, 3.4, port=40002, opened=3.0),
        times(1, 2, 3.4, port=40002, opened=3.0),
    ]
    found: dict[str, Any] = har_of(cell, cell.flows[0], objects, T0_NS)["log"]
    return found


def test_what_the_format_demands_is_there(log: dict[str, Any]) -> None:
    assert log["version"] == "1.2"
    assert log["creator"]["name"] == "netwarp"
    assert len(log["pages"]) == 2 and len(log["entries"]) == 6
    ids = [page["id"] for page in log["pages"]]
    for entry in log["entries"]:
        assert entry.keys() >= ENTRY and entry["request"].keys() >= REQUEST and entry["response"].keys() >= RESPONSE
        assert entry["pageref"] in ids
        timings = entry["timings"]
        assert timings.keys() >= {"send", "wait", "receive"}
        assert entry["time"] == pytest.approx(sum(value for value in timings.values() if value > 0))
        datetime.datetime.fromisoformat(entry["startedDateTime"])


def test_it_fits_the_schema_of_har(log: dict[str, Any]) -> None:
    """The schemas of har-schema, an ISO date and unknown sizes of -1 included; and they refuse what is none."""
    validator = validator_of("har.json")
    validator.validate({"log": log})
    for wrong in ({**log, "version": 1.2}, {**log, "entries": [{**log["entries"][0], "startedDateTime": "today"}]}):
        with pytest.raises(jsonschema.ValidationError):
            validator.validate({"log": wrong})


def test_the_committed_page_of_today_fits_it_too() -> None:
    validator_of("har.json").validate(json.loads((ROOT / "experiments/lee2008/today.har").read_bytes()))


def test_what_is_written_can_be_fetched_again(log: dict[str, Any]) -> None:
    pages = read_har(json.dumps({"log": log}).encode())
    assert [(page.html_bytes, page.object_bytes) for page in pages] == [(1000, (1000, 1000))] * 2
    assert pages[0].think_ns == pytest.approx(1.2e9) and pages[1].think_ns is None


def test_a_connection_is_set_up_in_its_first_entry(log: dict[str, Any]) -> None:
    connects = [round(entry["timings"]["connect"]) for entry in log["entries"]]
    assert connects == [100, -1, 100, 100, -1, -1]
    assert log["entries"][0]["startedDateTime"] == "2023-11-14T22:13:21.000000Z"
    assert log["pages"][0]["pageTimings"] == {"onContentLoad": pytest.approx(400), "onLoad": pytest.approx(800)}


@pytest.mark.parametrize(
    ("flow", "version"),
    [
        ('protocol = "tcp"\npage = { html = "2 kB" }', "HTTP/1.1"),
        ('protocol = "tcp"\npage = { html = "2 kB", multiplexed = true }', "HTTP/2"),
        ('protocol = "sctp"\npage = { html = "2 kB" }', "HTTP/1.1 over SCTP"),
    ],
)
def test_request_and_response_name_what_carried_them(flow: str, version: str) -> None:
    cell = plan_of(replaced('protocol = "tcp"', flow)).cells[0]
    (entry,) = har_of(cell, cell.flows[0], [times(0, 0, 1.1, port=40000, opened=1.0)], T0_NS)["log"]["entries"]
    assert entry["request"]["httpVersion"] == entry["response"]["httpVersion"] == version


def test_pages_count_from_one_as_in_the_waterfall(log: dict[str, Any]) -> None:
    assert [page["title"].rpartition(", ")[2] for page in log["pages"]] == ["page 1", "page 2"]


def test_waits_are_said(log: dict[str, Any]) -> None:
    assert all(entry["timings"]["wait"] == pytest.approx(100) for entry in log["entries"])
    assert all("100 ms before it could be delivered" in entry["comment"] for entry in log["entries"])
