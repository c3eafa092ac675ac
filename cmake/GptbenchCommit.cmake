# gptbench_commit: the object that knows the commit of the tree at build time. Programs link it; it
# takes the place of base/git_commit_unknown.cpp, which an archive yields only when nothing before
# defines build_git_commit(). So a commit recompiles one small file and links two programs again.
set(commit_source ${CMAKE_CURRENT_BINARY_DIR}/git_commit.cpp)
add_custom_target(gptbench_commit_source
  COMMAND ${CMAKE_COMMAND} -DSOURCE_DIR=${PROJECT_SOURCE_DIR} -DOUTPUT=${commit_source}
          -P ${PROJECT_SOURCE_DIR}/cmake/write_commit.cmake
  BYPRODUCTS ${commit_source} COMMENT "" VERBATIM)
add_library(gptbench_commit OBJECT ${commit_source})
target_link_libraries(gptbench_commit PRIVATE gptbench_base)
add_dependencies(gptbench_commit gptbench_commit_source)
