# Spack package of gptbench. From a checkout:
#
#   spack repo add doc/ecosystem/spack
#   spack install gptbench             # what is committed; `spack dev-build gptbench@main`: what is there
#
# Not exercised with Spack itself; the tests compile this file and compare it with the build (test/ecosystem).
import os

from spack.package import *

try:  # from Spack 1.0 on spack.package has no build systems
    from spack_repo.builtin.build_systems.cmake import CMakePackage
except ImportError:
    pass


class Gptbench(CMakePackage):
    """Measures how fast a machine trains transformers: an MPI program that trains a model from a
    Fortran-namelist deck, verifies the numbers and writes HDF5."""

    # The checkout that holds this file.
    git = "file://" + os.path.abspath(os.path.join(os.path.dirname(__file__), *[".."] * 5))

    license("Apache-2.0")

    version("main", branch="main")

    variant("cuda", default=False, description="CUDA back end beside the host's")
    variant("native", default=False, description="-march=native on top of Spack's target flags")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.22:", type="build")
    depends_on("mpi@3.1:")
    depends_on("hdf5")
    depends_on("kokkos@3.4:")
    depends_on("onednn@2.6:")
    depends_on("nlohmann-json", type="build")
    depends_on("cuda@12:", when="+cuda")
    depends_on("librsvg", type="run")
    depends_on("googletest", type="test")

    def cmake_args(self):
        return [
            self.define_from_variant("GPTBENCH_CUDA", "cuda"),
            self.define_from_variant("GPTBENCH_NATIVE", "native"),
            self.define("HDF5_ROOT", self.spec["hdf5"].prefix),
            self.define("GPTBENCH_TOP_LINKS", False),
            self.define("GPTBENCH_WERROR", False),
            self.define("BUILD_TESTING", self.run_tests),
        ]
