# Writes OUTPUT, the C++ source of what deck/presets.h declares, from files of DIRECTORY.
#   cmake -DDIRECTORY=... -DOUTPUT=... -P embed_input.cmake
function(embed folder function)
  file(GLOB files ${DIRECTORY}/${folder}/*.in)
  list(FILTER files EXCLUDE REGEX "/machines/local\\.in$")  # of the machine at hand, read when it runs
  list(SORT files)
  set(rows "")
  foreach(file IN LISTS files)
    get_filename_component(name ${file} NAME)
    string(REGEX REPLACE "\\.in$" "" name ${name})
    file(READ ${file} text)
    string(APPEND rows "      {\"${name}\", R\"input(${text})input\"},\n")
  endforeach()
  file(APPEND ${OUTPUT} "
const std::vector<Preset>& ${function}() {
  static const std::vector<Preset> files = {
${rows}  };
  return files;
}
")
endfunction()

file(WRITE ${OUTPUT} "// Generated from files of input/.
#include \"deck/presets.h\"

namespace gptbench {
")
embed(presets embedded_presets)
embed(machines embedded_machines)
embed(software embedded_software)
file(READ ${DIRECTORY}/devices.in devices)
file(READ ${DIRECTORY}/classes.in classes)
file(APPEND ${OUTPUT} "
const char* embedded_devices() {
  return R\"input(${devices})input\";
}

const char* embedded_classes() {
  return R\"input(${classes})input\";
}

}  // namespace gptbench
")
