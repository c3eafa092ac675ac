# Writes OUTPUT, the C++ source of embedded_presets() (deck/presets.h), from DIRECTORY/*.in.
#   cmake -DDIRECTORY=... -DOUTPUT=... -P embed_presets.cmake
file(GLOB files ${DIRECTORY}/*.in)
list(SORT files)
set(rows "")
foreach(file IN LISTS files)
  get_filename_component(name ${file} NAME)
  string(REGEX REPLACE "\\.in$" "" name ${name})
  file(READ ${file} text)
  string(APPEND rows "      {\"${name}\", R\"preset(${text})preset\"},\n")
endforeach()
file(WRITE ${OUTPUT} "// Generated from input/presets.
#include \"deck/presets.h\"

namespace gptbench {

const std::vector<Preset>& embedded_presets() {
  static const std::vector<Preset> presets = {
${rows}  };
  return presets;
}

}  // namespace gptbench
")
