# SPDX-License-Identifier: Apache-2.0
"""The fake driver seen by programs that nobody here wrote, nvidia-ml-py and nvitop, and by tokwatt: all must show the same
GPUs. And our declarations of NVML against those of nvidia-ml-py."""
import json, os, re, subprocess, sys, textwrap, time

import pytest

pynvml = pytest.importorskip("pynvml")
BUILD, SOURCE, TOKWATT = os.environ["TW_BUILD"], os.environ["TW_SOURCE"], os.environ["TOKWATT"]
FAKE = os.path.join(BUILD, "test/fake/nvml")


@pytest.fixture
def site(tmp_path):
    """The environment in which every program finds the fake driver and one simulated site."""
    env = dict(os.environ, LD_LIBRARY_PATH=FAKE, TW_FAKE_NVML=str(tmp_path / "site"), NO_COLOR="1",
               TW_FAKE_NVML_CONF="gpus=8,jobs=2,seed=3")
    env.pop("TW_NVML_PATH", None)
    return env


def faults(site, text):
    path = site["TW_FAKE_NVML"] + ".faults"
    with open(path + ".new", "w") as f:
        f.write(text)
    os.replace(path + ".new", path)


def gpus(site, rc=0):
    r = subprocess.run([TOKWATT, "gpus", "--json"], env=site, capture_output=True, text=True, timeout=60)
    assert r.returncode == rc, r.stderr
    return json.loads(r.stdout)["gpus"]


def python(site, code, stdin=None):
    """Run a piece of Python that sees the fake driver; it prints JSON."""
    r = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], env=site, capture_output=True, text=True, timeout=60,
                       stdin=stdin)
    assert r.returncode == 0, r.stderr
    return json.loads(r.stdout)


# Look at everything a hundred times a second until the input is closed, and print the distinct values of each GPU.
WATCH = """
    import json, select, sys, time
    {setup}
    seen = [dict() for _ in devices]
    while not select.select([sys.stdin], [], [], 0.01)[0]:
        for s, d in zip(seen, devices):
            for key, value in look(d).items():
                s.setdefault(key, set()).add(value)
    print(json.dumps([{{k: sorted(v) for k, v in s.items()}} for s in seen]))
"""
PYNVML = """
    import pynvml as n
    n.nvmlInit()
    devices = [n.nvmlDeviceGetHandleByIndex(i) for i in range(n.nvmlDeviceGetCount())]
    def look(h):
        u, f = n.nvmlDeviceGetUtilizationRates(h), n.nvmlDeviceGetFieldValues(h, [185, 186])
        return dict(uuid=n.nvmlDeviceGetUUID(h), pci=n.nvmlDeviceGetPciInfo(h).busId, model=n.nvmlDeviceGetName(h),
                    power_w=n.nvmlDeviceGetPowerUsage(h), average=f[0].value.uiVal, power_instant_w=f[1].value.uiVal,
                    cap_w=n.nvmlDeviceGetPowerManagementLimit(h), cap_enforced_w=n.nvmlDeviceGetEnforcedPowerLimit(h),
                    limit_min_w=n.nvmlDeviceGetPowerManagementLimitConstraints(h)[0],
                    limit_max_w=n.nvmlDeviceGetPowerManagementLimitConstraints(h)[1],
                    limit_default_w=n.nvmlDeviceGetPowerManagementDefaultLimit(h),
                    util_frac=u.gpu, mem_copy_util_frac=u.memory, temp_c=n.nvmlDeviceGetTemperatureV(h, 0),
                    mem_used_bytes=n.nvmlDeviceGetMemoryInfo(h, n.nvmlMemory_v2).used,
                    sm_clock_hz=n.nvmlDeviceGetClockInfo(h, n.NVML_CLOCK_SM),
                    mem_clock_hz=n.nvmlDeviceGetClockInfo(h, n.NVML_CLOCK_MEM),
                    throttle_bits=n.nvmlDeviceGetCurrentClocksEventReasons(h),
                    energy=n.nvmlDeviceGetTotalEnergyConsumption(h))
"""
NVITOP = """
    from nvitop import Device
    devices = Device.all()
    def look(d):
        return dict(uuid=d.uuid(), pci=d.bus_id(), model=d.name(), power_w=d.power_usage(), cap_w=d.power_limit(),
                    util_frac=d.gpu_utilization(), mem_copy_util_frac=d.memory_utilization(), temp_c=d.temperature(),
                    mem_used_bytes=d.memory_used(), sm_clock_hz=d.sm_clock(), mem_clock_hz=d.memory_clock())
"""
# What one unit of theirs is in ours; the rest are texts and bits.
UNIT = dict(power_w=1e-3, power_instant_w=1e-3, cap_w=1e-3, cap_enforced_w=1e-3, limit_min_w=1e-3, limit_max_w=1e-3,
            limit_default_w=1e-3, util_frac=0.01, mem_copy_util_frac=0.01, temp_c=1, mem_used_bytes=1, sm_clock_hz=1e6,
            mem_clock_hz=1e6, throttle_bits=1)


def watched_by(site, setup):
    """What another program saw while tokwatt looked, and what tokwatt saw."""
    code = textwrap.dedent(WATCH).format(setup=textwrap.dedent(setup))
    p = subprocess.Popen([sys.executable, "-c", code], env=site, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    time.sleep(1.5)  # so that it looks from before to after
    ours = gpus(site)
    time.sleep(0.3)
    out, _ = p.communicate("\n", timeout=60)
    assert p.returncode == 0
    return json.loads(out), ours


def check_same(theirs, ours, keys):
    assert len(theirs) == len(ours) == 8
    for t, o in zip(theirs, ours):
        for key in ("uuid", "pci", "model"):
            assert t[key] == [o[key]]
        for key in keys:
            # 24 bits of a float are what a reading keeps.
            assert any(abs(v * UNIT[key] - o[key]) <= 2e-7 * abs(o[key]) for v in t[key]), (key, o[key], t[key])


def test_nvidia_ml_py_sees_what_tokwatt_sees(site):
    theirs, ours = watched_by(site, PYNVML)
    check_same(theirs, ours, UNIT)
    for t in theirs:
        assert len(t["power_w"]) > 5 and len(t["energy"]) > 5  # the plant runs
        assert set(t["average"]) & set(t["power_w"])           # PowerUsage is the mean of a second on Hopper
        span_j = 1e-3 * (t["energy"][-1] - t["energy"][0])
        assert span_j > 0


def test_nvitop_sees_what_tokwatt_sees(site):
    pytest.importorskip("nvitop")
    theirs, ours = watched_by(site, NVITOP)
    check_same(theirs, ours, [k for k in UNIT if k in theirs[0]])


def test_nvitop_shows_its_table(site):
    pytest.importorskip("nvitop")
    r = subprocess.run([sys.executable, "-m", "nvitop", "-1"], env=dict(site, TERM="dumb", COLUMNS="100"), capture_output=True,
                       text=True, timeout=60)
    assert r.returncode == 0 and r.stderr == "", r.stderr
    assert len(re.findall(r"\d+W / 700W", r.stdout)) == 8
    assert "Driver Version: 580.0.0" in r.stdout and "CUDA Driver Version: 13.0" in r.stdout


def test_energy_counter_agrees_with_power(site):
    got = python(site, """
        import json, time, pynvml as n
        n.nvmlInit()
        h = n.nvmlDeviceGetHandleByIndex(0)
        e0, t0, watts = n.nvmlDeviceGetTotalEnergyConsumption(h), time.monotonic(), []
        while time.monotonic() - t0 < 4:
            watts.append(n.nvmlDeviceGetFieldValues(h, [186])[0].value.uiVal * 1e-3)
            time.sleep(0.02)
        print(json.dumps([1e-3 * (n.nvmlDeviceGetTotalEnergyConsumption(h) - e0), sum(watts) / len(watts), time.monotonic() - t0]))
    """)
    energy_j, mean_w, span_s = got
    assert energy_j == pytest.approx(mean_w * span_s, rel=0.1)


GPM = """
    import json, select, sys, time, pynvml as n
    n.nvmlInit()
    h = n.nvmlDeviceGetHandleByIndex(0)
    assert n.nvmlGpmQueryDeviceSupport(h).isSupportedDevice == 1
    samples = []
    while not select.select([sys.stdin], [], [], 0.05)[0]:
        samples.append((time.monotonic(), n.nvmlGpmSampleGet(h, n.nvmlGpmSampleAlloc())))
    get = n.c_nvmlGpmMetricsGet_t()
    get.version, get.numMetrics = n.NVML_GPM_METRICS_GET_VERSION, 4
    for i, m in enumerate([n.NVML_GPM_METRIC_SM_UTIL, n.NVML_GPM_METRIC_ANY_TENSOR_UTIL, n.NVML_GPM_METRIC_DRAM_BW_UTIL,
                           n.NVML_GPM_METRIC_NVDEC_0_UTIL]):
        get.metrics[i].metricId = m
    out = []
    for t, a in samples:
        later = [s for s in samples if s[0] >= t + 1.0]
        if later:
            get.sample1, get.sample2 = a, later[0][1]
            n.nvmlGpmMetricsGet(get)
            out.append([(get.metrics[i].nvmlReturn, get.metrics[i].value) for i in range(4)])
    print(json.dumps(out))
"""


def test_gpm_sample_pairs(site):
    """Windows of a second all the time while tokwatt looks: one of them is near the one that it took."""
    p = subprocess.Popen([sys.executable, "-c", textwrap.dedent(GPM)], env=site, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                         text=True)
    time.sleep(1.5)
    ours = gpus(site)[0]
    time.sleep(0.3)
    windows = json.loads(p.communicate("\n", timeout=60)[0])
    assert len(windows) > 10
    for k, key in enumerate(("sm_active_frac", "tensor_active_frac", "dram_active_frac")):
        assert all(w[k][0] == 0 for w in windows)
        assert any(abs(ours[key] - 0.01 * w[k][1]) < 0.05 for w in windows), (ours[key], windows)
    assert all(w[3][0] == pynvml.NVML_ERROR_NOT_SUPPORTED for w in windows)


def test_a_limit_set_by_another_program(site):
    python(site, """
        import pynvml as n
        n.nvmlInit()
        n.nvmlDeviceSetPowerManagementLimit(n.nvmlDeviceGetHandleByUUID(b"GPU-51a70000-0000-4000-8000-000000000005"), 345000)
        print("null")
    """)
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        g = gpus(site)
        if g[5]["power_w"] < 360:
            break
    assert g[5]["cap_w"] == 345 and g[5]["cap_enforced_w"] == 345 and g[4]["cap_w"] == 700
    assert g[5]["power_w"] < 360


def test_faults_are_seen_alike(site):
    faults(site, "0 na power average instant temp\n1 mig\n2 pid %d 3000000000\n3 nopersist\n" % os.getpid())
    got = python(site, """
        import json, pynvml as n
        n.nvmlInit()
        h = [n.nvmlDeviceGetHandleByIndex(i) for i in range(8)]
        def call(f, *a):
            try: return f(*a)
            except n.NVMLError as e: return type(e).__name__
        print(json.dumps([call(n.nvmlDeviceGetPowerUsage, h[0]), call(n.nvmlDeviceGetTemperatureV, h[0], 0),
                          call(n.nvmlDeviceGetMigMode, h[1]), call(n.nvmlDeviceGetUtilizationRates, h[1]),
                          [p.pid for p in n.nvmlDeviceGetComputeRunningProcesses(h[2])], n.nvmlDeviceGetPersistenceMode(h[3])]))
    """)
    assert got == ["NVMLError_NotSupported", "NVMLError_NotSupported", [1, 1], "NVMLError_NotSupported", [os.getpid()], 0]
    ours = gpus(site, rc=1)  # one GPU tells no power
    assert ours[0]["power_w"] is None and ours[0]["temp_c"] is None and ours[0]["state"] == "no reading"
    assert ours[1]["mig"] is True and ours[1]["util_frac"] is None and ours[1]["power_w"] > 0
    assert ours[2]["pids"] == [os.getpid()] and ours[2]["processes"] == 1
    assert ours[3]["persistence"] is False and ours[4]["persistence"] is True

    faults(site, "6 lost\n")
    got = python(site, """
        import json, pynvml as n
        n.nvmlInit()
        try:
            n.nvmlDeviceGetPowerUsage(n.nvmlDeviceGetHandleByIndex(6))
        except n.NVMLError as e:
            print(json.dumps(type(e).__name__))
    """)
    assert got == "NVMLError_GpuIsLost"
    assert len(gpus(site, rc=1)) == 7


def test_reload_under_a_program_that_runs(site):
    r = python(site, """
        import json, os, time, pynvml as n
        path = os.environ["TW_FAKE_NVML"] + ".faults"
        n.nvmlInit()
        h = n.nvmlDeviceGetHandleByIndex(0)
        n.nvmlDeviceSetPowerManagementLimit(h, 300000)
        before = n.nvmlDeviceGetPowerManagementLimit(h)
        open(path, "w").write("* reload 200ms\\n")
        seen = []
        for _ in range(400):
            try:
                n.nvmlDeviceGetPowerUsage(h)
                seen.append("ok")
            except n.NVMLError as e:
                seen.append(type(e).__name__)
            time.sleep(0.002)
        n.nvmlInit()
        h = n.nvmlDeviceGetHandleByIndex(0)
        print(json.dumps([before, sorted(set(seen)), seen[-1], n.nvmlDeviceGetPowerManagementLimit(h)]))
    """)
    assert r[0] == 300000 and r[3] == 700000
    assert "NVMLError_DriverNotLoaded" in r[1] and r[2] == "NVMLError_Uninitialized"


# ---- our declarations ----

API = open(os.path.join(SOURCE, "src/io/nvml/nvml_api.h"), encoding="utf-8").read()
LIB = open(os.path.join(SOURCE, "src/io/nvml/nvml_lib.c"), encoding="utf-8").read()


def test_layouts_are_those_of_nvidia_ml_py():
    import ctypes
    same = {"nvmlPciInfo_t": "nvmlPciInfo_t", "nvmlMemory_t": "c_nvmlMemory_t", "nvmlUtilization_t": "c_nvmlUtilization_t",
            "nvmlValue_t": "c_nvmlValue_t", "nvmlFieldValue_t": "c_nvmlFieldValue_t",
            "nvmlProcessInfo_v2_t": "c_nvmlProcessInfo_v2_t", "nvmlEventData_t": "c_nvmlEventData_t",
            "nvmlGpmMetric_t": "c_nvmlGpmMetric_t"}
    sizes = dict((name, int(size)) for size, name in re.findall(
        r'static_assert\(sizeof\((?:struct|union) \w+\) == (\d+)[^"]*"(\w+)"\)', LIB))
    assert set(sizes) == set(same)
    for name, theirs in same.items():
        assert sizes[name] == ctypes.sizeof(getattr(pynvml, theirs)), name
    get = pynvml.c_nvmlGpmMetricsGet_t
    assert get.sample1.offset == 8 and get.metrics.offset == 24
    assert pynvml.NVML_GPM_METRIC_MAX == int(re.search(r"NV_GPM_METRIC_MAX (\d+)", API)[1])
    assert "== 0x%08xU" % pynvml.nvmlMemory_v2 in LIB and "== 0x%08xU" % pynvml.nvmlTemperature_v1 in LIB


def test_numbers_are_those_of_nvidia_ml_py():
    errors = re.findall(r"X\((\w+), (\d+)\)", API[:API.index("enum nv_ret")])
    assert len(errors) > 10
    for name, value in errors:
        theirs = "NVML_SUCCESS" if name == "OK" else "NVML_ERROR_" + name
        assert getattr(pynvml, theirs) == int(value), name
    for ours, theirs in {"NV_FI_TOTAL_ENERGY": "NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "NV_FI_POWER_AVERAGE": "NVML_FI_DEV_POWER_AVERAGE",
                         "NV_FI_POWER_INSTANT": "NVML_FI_DEV_POWER_INSTANT", "NV_GPM_SM_UTIL": "NVML_GPM_METRIC_SM_UTIL",
                         "NV_GPM_ANY_TENSOR_UTIL": "NVML_GPM_METRIC_ANY_TENSOR_UTIL", "NV_GPM_DRAM_BW_UTIL": "NVML_GPM_METRIC_DRAM_BW_UTIL",
                         "NV_GPM_PCIE_TX": "NVML_GPM_METRIC_PCIE_TX_PER_SEC", "NV_GPM_PCIE_RX": "NVML_GPM_METRIC_PCIE_RX_PER_SEC",
                         "NV_GPM_NVLINK_RX": "NVML_GPM_METRIC_NVLINK_TOTAL_RX_PER_SEC",
                         "NV_GPM_NVLINK_TX": "NVML_GPM_METRIC_NVLINK_TOTAL_TX_PER_SEC", "NV_EVENT_XID": "nvmlEventTypeXidCriticalError",
                         "NV_CLOCK_SM": "NVML_CLOCK_SM", "NV_CLOCK_MEM": "NVML_CLOCK_MEM", "NV_TEMP_GPU": "NVML_TEMPERATURE_GPU"}.items():
        assert int(re.search(r"\b%s = (\d+)" % ours, API)[1]) == getattr(pynvml, theirs), ours


def test_functions_exist_by_name():
    names = re.findall(r"X\((?:MUST|MAY), \w+, (nvml\w+)", API)
    assert len(names) > 35 and len(set(names)) == len(names)
    text = open(pynvml.__file__, encoding="utf-8").read()
    # nvidia-ml-py initialises by nvmlInitWithFlags; nvmlInit_v2 is the same with flags 0.
    assert [n for n in names if '"%s"' % n not in text] == ["nvmlInit_v2"]
