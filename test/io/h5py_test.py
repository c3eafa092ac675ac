"""h5py_test.py RESULT.h5 SCHEMA.md: values, types and labels of the file that write_made_record
writes, and that the page names all of it."""
import re
import sys

import h5py
import numpy as np

with h5py.File(sys.argv[1], "r") as f:
    assert f.attrs["schema"] == "gptbench-1"
    assert (f.attrs["verdict"], f.attrs["status"]) == ("VALID", "OK")
    assert "\u00e9" in f.attrs["reason"]

    run, model = f["/config/run"].attrs, f["/config/model"].attrs
    assert run["name"] == "made" and run["steps"] == 4
    assert run["steps"].dtype == np.int64
    assert run["deterministic"].dtype == bool and run["deterministic"] and not run["verify"]
    assert model["dropout"].dtype == np.float64 and model["dropout"] == 0.1
    keys = f["/config/keys"]
    assert keys.dtype.names == ("group", "key", "value", "unit", "description")
    assert keys.shape == (sum(len(g.attrs) for n, g in f["/config"].items() if n != "keys"),)

    assert f["/provenance/deck_raw"].asstr()[()].startswith("&run name='made' /\n")
    assert list(f["/provenance/hostnames"].asstr()) == ["node0", "node1"]

    s = f["/summary"].attrs
    assert s["num_params"] == 124475904 and s["flops_convention"] == "mpt"
    assert s["flops_per_step_mpt"] == 7.04e12 and s["mfu"] == 0.489

    # Writer and reader share the list of names, so only another program notices two that are swapped.
    expected = dict(
        world_size=2, nodes=1, ranks_per_node=2, timed_steps=3, tokens_per_step=8192, sec_per_it=32.0,
        sec_per_it_min=31.5, sec_per_it_max=33.0, tokens_per_s=256.0, samples_per_s=0.25,
        model_tflops_per_device=0.11, hardware_tflops_per_device=0.12, hfu=0.533, hardware_factor=1.0,
        peak_tflops=0.225, peak_memory_bytes=2.5e9, final_loss=9.75, clock_ghz=2.2, utilisation=0.97,
        device_memory_bytes=12.0e9, device_memory_used_bytes=2.6e9, power_w=65.5, power_limit_w=120.0,
        energy_j_per_token=0.25, cpu_clock_ghz=2.25, node_memory_bytes=24.0e9,
        node_memory_used_bytes=6.5e9, node_power_w=131.0, temperature_c=71.5, errors_corrected=4.0,
        errors_uncorrected=0.0, drift_percent=-0.25, drift_percent_per_hour=-1.5)
    assert {name: s[name] for name in expected} == expected

    steps = len(f["/steps/loss"])
    assert all(f["/steps"][n].shape == (steps,) for n in ("grad_norm", "time_s", "tokens"))
    # The third step, counted from 1.
    ended = f["/steps"].attrs
    assert (ended["ended_in_step"], ended["warmup_steps"]) == (3, 1)
    assert f["/timing/forward_s"].shape == (steps, 2)
    assert f["/timing/forward_s"][1, 0] == 3.0
    assert f["/sensors"].attrs["interval_s"] == 2.0 and list(f["/sensors"]) == ["power_w", "temperature_c", "utilisation"]
    assert f["/sensors/temperature_c"][()].tolist() == [65.0, 71.5]
    assert f["/memory/peak_bytes"][()].tolist() == [2500000000, 2400000000]
    assert f["/offload/load_bytes"][()].tolist() == [4096, 8192]
    assert f["/offload/store_bytes"][()].tolist() == [2048, 1024]
    arena = f["/memory/arena"]
    assert arena.dtype.names == ("name", "class", "dtype", "offset", "bytes", "lifetime")
    assert arena[1]["name"].decode() == "h.0.attn.q" and arena[1]["offset"] == 4096
    assert f["/comm/data_all_reduce_bytes"][()].tolist() == [100, 101]
    assert f["/comm/data_all_reduce_exposed_s"].dtype == np.float64
    assert f["/comm/data_all_reduce_least_s"][0] <= f["/comm/data_all_reduce_time_s"][0]
    check = f["/verify/replicas_identical"].attrs
    assert (check["value"], check["threshold"], bool(check["passed"])) == (3.0, 0.0, False)
    assert len(f["/projection"]) == 0
    kernels, messages = f["/calibration/kernels"], f["/calibration/messages"]
    assert kernels.dtype.names == ("kernel", "type", "rows", "columns", "inner", "flops", "bytes",
                                   "time_s", "spread")
    assert kernels[0]["kernel"].decode() == "linear_forward" and kernels[0]["inner"] == 768
    assert messages.dtype.names == ("axis", "op", "type", "redop", "ranks", "per_node", "bytes",
                                    "count", "time_s", "wrong")
    assert messages[0]["redop"].decode() == "sum" and messages[1]["time_s"] == 1.5e-6
    assert list(messages["wrong"]) == [0, 3]

    unlabelled = []
    f.visititems(lambda name, item: unlabelled.append(name)
                 if isinstance(item, h5py.Dataset) and not {"units", "description"} <= set(item.attrs)
                 else None)
    assert not unlabelled, unlabelled
    documented = set(re.findall(r"`([^`]+)`", open(sys.argv[2]).read()))
    names = set(f.attrs) | set(f["/provenance"]) | set(f["/steps"]) | set(f["/steps"].attrs)
    names |= {n for n in f["/summary"].attrs if not n.startswith("flops_per_step_")}
    names |= {"/" + group for group in f} | set(check) | set(f["/verify"].attrs)
    names |= set(arena.dtype.names) | set(keys.dtype.names)
    names |= set(f["/calibration"]) | set(kernels.dtype.names) | set(messages.dtype.names)
    assert names <= documented, names - documented
print("h5py", h5py.__version__, "reads all of", sys.argv[1])
