# Writes OUTPUT, the C++ source of what deck/presets.h declares, from DIRECTORY/presets/*.in and
# DIRECTORY/devices.in.
#   cmake -DDIRECTORY=... -DOUTPUT=... -P embed_input.cmake
file(GLOB files ${DIRECTORY}/presets/*.in)
list(SORT files)
set(rows "")
foreach(file IN LISTS files)
  get_filename_component(name ${file} NAME)
  string(REGEX REPLACE "\\.in$" "" name ${name})
  file(READ ${file} text)
  string(APPEND rows "      {\"${name}\", R\"preset(${text})preset\"},\n")
endforeach()
file(READ ${DIRECTORY}/devices.in devices)
file(WRITE ${OUTPUT} "// Generated from input/presets and input/devices.in.
#include \"deck/presets.h\"

namespace gptbench {

const std::vector<Preset>& embedded_presets() {
  static const std::vector<Preset> presets = {
${rows}  };
  return presets;
}

const char* embedded_devices() {
  return R\"devices(${devices})devices\";
}

}  // namespace gptbench
")
