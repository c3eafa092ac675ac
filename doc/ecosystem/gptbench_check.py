# ReFrame check of gptbench (ReFrame 4):
#
#   reframe -C <settings of the site> -c doc/ecosystem/gptbench_check.py -r
#
# Runs a deck on each partition, wants the verdict VALID, and reports throughput, time per step and TFLOP/s
# of its last line. With -S spec=FILE, `gptpost accept` must accept the result (doc/run_rules.md). The
# programs are those of the checkout (make) or of the installation (share/gptbench/doc/ecosystem) that this file
# lies in, or with -S top=... of another one.
import os

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import parameter, performance_function, run_after, sanity_function, variable

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))


@rfm.simple_test
class GptbenchCheck(rfm.RunOnlyRegressionTest):
    top = variable(str, value=TOP, loggable=False)
    deck = variable(str, value=os.path.join(TOP, "input", "124m_short.in"))
    ranks = parameter([1, 2])
    overrides = variable(str, value="")
    spec = variable(str, value="")
    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    time_limit = "30m"

    @run_after("init")
    def set_up(self):
        self.descr = f"gptbench on {self.ranks} ranks"
        places = [self.top, os.path.join(self.top, "bin"), os.path.join(self.top, "..", "..", "bin")]
        programs = next((each for each in places if os.path.isfile(os.path.join(each, "gptbench"))), self.top)
        self.executable = os.path.join(programs, "gptbench")
        self.executable_opts = [self.deck, "output.directory=result", *self.overrides.split()]
        if self.spec:
            gptpost = os.path.join(programs, "gptpost")
            self.postrun_cmds = [f"{gptpost} accept --junit accept.xml {self.spec} result/result.h5"]
        self.num_tasks = self.ranks
        self.tags = {"gptbench", "performance"}

    @sanity_function
    def is_valid(self):
        valid = sn.assert_found(r"^GPTBENCH status=OK verdict=VALID .*ranks=%d " % self.ranks, self.stdout)
        if not self.spec:
            return valid
        return sn.all([valid, sn.assert_found(r"^ACCEPTED: ", self.stdout)])

    def figure(self, name):
        return sn.extractsingle(r"^GPTBENCH .* %s=(\S+)" % name, self.stdout, 1, float)

    @performance_function("tokens/s")
    def throughput(self):
        return self.figure("tokens_per_s")

    @performance_function("s")
    def step_time(self):
        return self.figure("sec_per_it")

    @performance_function("TFLOP/s")
    def model_tflops(self):
        return self.figure("tflops")
