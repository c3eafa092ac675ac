# cmake -DSOURCE_DIR=<tree> -DOUTPUT=<file.cpp> -P write_commit.cmake
# Writes build_git_commit(): 12 digits of the commit, "+" when tracked files differ from it, "unknown"
# outside git. An unchanged file is left alone, so that nothing is built again.
set(commit unknown)
find_program(git NAMES git)
if(git AND EXISTS ${SOURCE_DIR}/.git)
  execute_process(COMMAND ${git} -C ${SOURCE_DIR} -c safe.directory=* rev-parse --short=12 HEAD
    OUTPUT_VARIABLE head OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE status)
  if(status EQUAL 0)
    set(commit ${head})
    execute_process(COMMAND ${git} --no-optional-locks -C ${SOURCE_DIR} -c safe.directory=* status
      --porcelain --untracked-files=no OUTPUT_VARIABLE changes ERROR_QUIET)
    if(changes)
      string(APPEND commit "+")
    endif()
  endif()
endif()
set(text "#include \"base/build_info.h\"\n\nconst char* gptbench::build_git_commit() {\n  return \"${commit}\";\n}\n")
set(previous "")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} previous)
endif()
if(NOT text STREQUAL previous)
  file(WRITE ${OUTPUT} "${text}")
endif()
