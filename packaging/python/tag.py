"""Names the systems that the wheel is for: those that the binary in it runs on."""

import os

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Tag(BuildHookInterface):
    """Takes the tag from the variable STOA_PACKAGE_TAG, such as `py3-none-manylinux_2_35_x86_64`."""

    def initialize(self, version, build_data):
        build_data["pure_python"] = False
        build_data["tag"] = os.environ["STOA_PACKAGE_TAG"]
