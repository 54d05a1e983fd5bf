# SPDX-License-Identifier: Apache-2.0
"""/metrics as Prometheus' own client library reads it, and promtool where it is installed."""
import os, shutil, subprocess, sys, urllib.request

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

sys.path.insert(0, os.path.join(os.environ["TW_SOURCE"], "test/browser"))
from fixture import Daemon  # noqa: E402

OPENMETRICS = "application/openmetrics-text; version=1.0.0"


@pytest.fixture(scope="module")
def daemon():
    with Daemon("--gpus", "64", "--jobs", "8", "--past", "60", "--odd") as d:
        d.ask("POST", "/v1/events", '{"cut_frac":0.3,"for_s":3000}')
        d.pause()
        yield d


def fetch(d, accept):
    request = urllib.request.Request(d.url + "/metrics", headers={"Accept": accept})
    return urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request).read().decode()


@pytest.mark.parametrize("accept,parse", [("text/plain", parse_text), (OPENMETRICS, parse_openmetrics)])
def test_client_library_reads_it(daemon, accept, parse):
    families = {f.name: f for f in parse(fetch(daemon, accept))}
    snapshot = daemon.get("/v1/snapshot")
    power = {s.labels["gpu_uuid"]: s.value for s in families["tokwatt_gpu_power_watts"].samples}
    assert power == pytest.approx({g["uuid"]: g["power_w"] for g in snapshot["gpus"]}, rel=1e-5)
    forecasts = families["tokwatt_forecast_power_watts"].samples
    assert len(forecasts) == 64 * 2 * 3 and {s.labels["level"] for s in forecasts} == {"0.1", "0.5", "0.9"}
    assert families["tokwatt_turns"].type == "counter"
    names = {s.labels["job_name"] for s in families["tokwatt_job_power_watts"].samples}
    assert 'a"b\\c\nd?\u00e9<b>' in names


def test_promtool_finds_nothing(daemon):
    promtool = shutil.which("promtool")
    if not promtool:
        pytest.skip("promtool is not installed (Debian package prometheus)")
    p = subprocess.run([promtool, "check", "metrics"], input=fetch(daemon, "text/plain"), capture_output=True, text=True)
    assert (p.returncode, p.stdout, p.stderr) == (0, "", "")
