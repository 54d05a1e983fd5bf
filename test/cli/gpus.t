# The GPUs of a source, and what the doctor says. NVML is the fake driver of the tests.
@ TW_FAKE_NVML_DIR
$ TW_NVML_PATH=/nonexistent tokwatt gpus
2> tokwatt gpus: no libnvidia-ml.so.1 could be opened at /nonexistent
? 2
$ TW_NVML_PATH=/nonexistent tokwatt doctor
fault  source        nvml: no libnvidia-ml.so.1 could be opened at /nonexistent
...
? 1
$ tokwatt gpus --source nothing
2> ~ tokwatt gpus: no source is called "nothing"; there is: .*
? 2
$ tokwatt doctor --source sim:gpus=x
2> ~ tokwatt doctor: gpus: .*
? 2
$ tokwatt gpus --source sim:gpus=2,jobs=1,noise=0
2 GPUs of sim:gpus=2,jobs=1,noise=0, simulated
~ UUID +POWER +LIMIT +RANGE +TEMP +UTIL +MEMORY +STATE
~ GPU-51a70000-0000-4000-8000-000000000000 +[0-9]+ W +700 W +200-700 W +[0-9]+ C +[0-9]+ % +[0-9]+ GB +ok
~ GPU-51a70000-0000-4000-8000-000000000001 +[0-9]+ W +700 W +200-700 W +[0-9]+ C +[0-9]+ % +[0-9]+ GB +ok
~ sum +[0-9]+ W +1400 W
$ tokwatt gpus --source sim:gpus=2,jobs=1,stuck=GPU-51a70000-0000-4000-8000-000000000001 | tail -2
~ GPU-51a70000-0000-4000-8000-000000000001 +- .*  no reading
~ sum .*
$ export TW_FAKE_NVML_CONF=gpus=2,jobs=1; tokwatt gpus --source nvml:path=$TW_FAKE_NVML_DIR
~ 2 GPUs, simulated, driver 580\.0\.0 \(.*/libnvidia-ml\.so\.1\)
~ UUID .*
~ GPU-51a70000-0000-4000-8000-000000000000 +[0-9]+ W +700 W +200-700 W +[0-9]+ C +[0-9]+ % +[0-9]+ GB +ok
~ GPU-51a70000-0000-4000-8000-000000000001 +[0-9]+ W +700 W .*
~ sum .*
$ export TW_FAKE_NVML_CONF=gpus=2,jobs=1 TW_FAKE_NVML_FAULTS=$PWD/f; printf '0 nonsense\n0 nopersist\n1 lost\n' > f; tokwatt doctor -s nvml:path=$TW_FAKE_NVML_DIR
~ ok +source +nvml:.*libnvidia-ml\.so\.1
ok     driver        driver 580.0.0, NVML 13.580.0.0, CUDA 13.0
...
fault  gpus          1 of 2 GPUs are read
...
~ warn +limits +1 of 1 GPUs accept no power limit and are only watched
...
~ warn +persistence +persistence mode is off on 1 GPUs: .*
...
? 1
$ tokwatt doctor --source sim:gpus=2,jobs=1 --json | python3 -c 'import json,sys; d=json.load(sys.stdin); print(d["schema"], d["healthy"], len(d["gpus"]), [c["verdict"] for c in d["checks"] if c["name"]=="gpus"])'
tokwatt.doctor/1 True 2 ['ok']
