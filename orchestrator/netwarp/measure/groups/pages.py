"""Times of pages and their objects, by the client's captures. Definitions: docs/metrics.md, Pages and their objects."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

import numpy as np

from ...captures.native import Floats
from ...core.types import OptionValue
from ...store.derived import PageObject
from ..observation import FlowObservation
from ..page_objects import asked_pages


def page_metrics(observation: FlowObservation) -> dict[str, float | None]:
    """Means over the pages of a flow; {} for flows that are none."""
    if not observation.flow.is_page:
        return _asked(observation)
    options = observation.flow.receiver_options
    pages: defaultdict[int, list[PageObject]] = defaultdict(list)
    for each in observation.page_objects:
        pages[each.page].append(each)
    counts_of = objects_of_pages(options)
    whole = [
        page
        for number, page in pages.items()
        if len(page) == counts_of[number % len(counts_of)] and all(each.delivered_s is not None for each in page)
    ]
    counts = {"pages_complete": float(len(whole)), "objects": float(sum(map(len, whole)))}
    if len(whole) < int(options["pages"]):
        return {**dict.fromkeys(TIMES), **counts}
    response = np.array([_end(page) - min(each.requested_s or 0.0 for each in page) for page in whole])
    begun = [
        min((each.requested_s if options.get("keep") else each.opened_s) or 0.0 for each in page) for page in whole
    ]
    objects = [each for page in whole for each in page]
    waits = np.array([(each.delivered_s or 0.0) - (each.complete_s or 0.0) for each in objects])
    times = {
        **_of_pages(response, np.array([_end(page) - start for page, start in zip(whole, begun, strict=True)])),
        "object_time_s": float(np.mean([(each.delivered_s or 0.0) - (each.requested_s or 0.0) for each in objects])),
        "object_wait_s": float(waits.mean()),
        "object_waited_ratio": float((waits > 0).mean()),
        "object_socket_wait_s": float(np.mean([each.told_s - (each.complete_s or 0.0) for each in objects])),
    }
    return {**times, **counts}


def _asked(observation: FlowObservation) -> dict[str, float | None]:
    """Of a program that fetches pages over TCP: what the client's captures tell without its word."""
    flow, client = observation.flow, observation.receiver
    if flow.program is None or flow.opener != "receiver" or flow.protocol != "tcp" or client is None:
        return {}
    pages = asked_pages(client)
    whole = [page for page in pages if page.complete]
    counts = {"pages_complete": float(len(whole))}
    if not whole or len(whole) < len(pages):
        return {**dict.fromkeys(TIMES), **counts}
    response = np.array([page.delivered_ns - page.requested_ns for page in whole]) / 1e9
    page_s = np.array([page.delivered_ns - page.opened_ns for page in whole]) / 1e9
    return {**_of_pages(response, page_s), **counts}


def _of_pages(response: Floats, page_s: Floats) -> dict[str, float | None]:
    """Metrics of the times of whole pages (s)."""
    return {
        "response_time_s": float(response.mean()),
        "page_time_s": float(page_s.mean()),
        "response_time_p95_s": float(np.percentile(response, 95, method="inverted_cdf")),
        "response_time_max_s": float(response.max()),
    }


def objects_of_pages(options: Mapping[str, OptionValue]) -> list[int]:
    """The number of objects of each kind of page, its HTML with them; kinds take turns."""
    html = int("html_bytes" in options)
    if "page_objects" in options:
        return [int(count) + html for count in str(options["page_objects"]).split(",")]
    return [(len(str(options["object_bytes"]).split(",")) if "object_bytes" in options else 0) + html]


TIMES = (
    "response_time_s", "page_time_s", "response_time_p95_s", "response_time_max_s", "object_time_s", "object_wait_s",
    "object_waited_ratio", "object_socket_wait_s",
)  # fmt: skip


def _end(page: list[PageObject]) -> float:
    return max(each.delivered_s or 0.0 for each in page)
