"""Reads an OpenMetrics text with the reference parser of Prometheus' Python client and prints how much is in it, as JSON."""

import json
import sys

from prometheus_client.openmetrics.parser import text_string_to_metric_families

with open(sys.argv[1], encoding="utf-8", newline="\n") as file:
    families = list(text_string_to_metric_families(file.read()))
samples = [sample for family in families for sample in family.samples]
json.dump({
    "families": len(families),
    "samples": len(samples),
    "counters": sum(family.type == "counter" for family in families),
    "values": {sample.name: sample.value for sample in samples if not sample.labels and sample.timestamp is None},
    "timed": sum(sample.timestamp is not None for sample in samples),
}, sys.stdout, sort_keys=True)
