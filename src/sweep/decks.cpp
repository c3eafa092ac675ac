#include "sweep/decks.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <tuple>

#include "base/error.h"
#include "io/file_bytes.h"
#include "sweep/rows.h"

namespace gptbench {

std::string shell_word(const std::string& word) {
  const std::string plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-+:@%,=";
  if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) return word;
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\"'\"'") : std::string(1, c);
  return out + "'";
}

namespace {

// The part of submit.sh for PJM. A bulk job cannot be part of a step job (user guide of Fugaku, 5.3
// and 5.4), so nothing can be submitted that waits for it. With --step each row is a step, and the
// job of tables the last one. A step begins when the one before it has ended, however that was.
constexpr const char* pjsub_start =
    "step=\n"
    "if [ \"$1\" = --step ]; then step=yes && shift; fi\n"
    "job=\n"
    "submit_step() {\n"
    "  if [ -n \"$job\" ]; then set -- --sparam \"jid=$job\" \"$@\"; fi\n"
    "  job=$(pjsub -z jid --step \"$@\")\n"
    "  job=${job%_*}\n"
    "}\n"
    "pjm_rows() {\n"
    "  GPTBENCH_OUTPUT=$output/$1 count=$2 && shift 2\n"
    "  export GPTBENCH_OUTPUT ROW=1\n"
    "  if [ -z \"$step\" ]; then\n"
    "    pjsub --bulk --sparam \"1-$count\" \"$@\"\n"
    "    return\n"
    "  fi\n"
    "  while [ \"$ROW\" -le \"$count\" ]; do\n"
    "    submit_step -x ROW \"$@\"\n"
    "    ROW=$((ROW + 1))\n"
    "  done\n"
    "}\n";
constexpr const char* pjsub_end =
    "export STUDY=\"$output\"\n"
    "if [ -n \"$step\" ]; then\n"
    "  submit_step -x STUDY -x GPTBENCH_JOBSCRIPTS \"$@\" \"$scripts/sites/fugaku.pjm\"\n"
    "  echo \"rows, then tables, plots and report in $output: step job $job\"\n"
    "else\n"
    "  echo \"When all rows have ended, STUDY=$output: pjsub -x STUDY $scripts/sites/fugaku.pjm\"\n"
    "fi\n";

// submit.sh from its commands, one per layout of nodes and ranks.
std::string submit_script(const std::string& directory, const std::string& sbatch,
                          const std::string& pjsub) {
  const std::filesystem::path path = std::filesystem::path(directory + "/.").lexically_normal();
  const std::string name = path.parent_path().filename().string();
  std::string text =
      "#!/bin/sh\n"
      "# Submits the rows by sbatch or (PJM) pjsub, whose options may follow, and the job that "
      "makes\n"
      "# tables, plots and a report of all of them. Under PJM that job needs --step, before other\n"
      "# options: the rows run one after the other. Start it where gptbench --write-decks was "
      "started,\n"
      "# since the lists name the decks from there: the top of the tree, or any directory with an\n"
      "# installed gptbench in PATH. Results: $GPTBENCH_OUTPUT, or a folder of output/.\n"
      "set -e\n"
      "output=$GPTBENCH_OUTPUT\n"
      "if [ -z \"$output\" ]; then output=" +
      shell_word("output/" + name) +
      "; fi\n"
      "scripts=${GPTBENCH_JOBSCRIPTS:-jobscripts}\n"
      "if [ ! -d \"$scripts\" ] && program=$(command -v gptbench); then\n"
      "  scripts=${program%/bin/*}/share/gptbench/jobscripts\n"
      "fi\n"
      "export GPTBENCH_JOBSCRIPTS=\"$scripts\"\n";
  if (sbatch.empty()) return text;
  return text + "if command -v pjsub >/dev/null; then\n" + pjsub_start + pjsub + pjsub_end +
         "exit\nfi\n"
         "jobs=\n"
         "# Task numbers of an array stay below MaxArraySize: what goes beyond is a further "
         "array.\n"
         "limit=$(scontrol show config 2>/dev/null | sed -n 's/^MaxArraySize *= *//p')\n"
         "if [ \"${limit:-0}\" -lt 2 ]; then limit=1001; fi\n"
         "rows() {\n"
         "  name=$1 left=$2 skipped=0 && shift 2\n"
         "  while [ \"$left\" -gt 0 ]; do\n"
         "    tasks=$left\n"
         "    if [ \"$tasks\" -ge \"$limit\" ]; then tasks=$((limit - 1)); fi\n"
         "    job=$(GPTBENCH_OUTPUT=$output/$name sbatch --parsable --array=1-$tasks \"$@\" "
         "$skipped)\n"
         "    jobs=$jobs:${job%%;*} left=$((left - tasks)) skipped=$((skipped + tasks))\n"
         "    echo \"rows of $name: job ${job%%;*}\"\n"
         "  done\n"
         "}\n" +
         sbatch +
         "job=$(sbatch --parsable \"$@\" --dependency=\"afterany$jobs\" --kill-on-invalid-dep=yes "
         "\"$scripts/post.slurm\" \"$output\")\n"
         "echo \"tables, plots and report: job ${job%%;*}, then in $output\"\n";
}

// Shape shared by the rows of an array job.
struct JobShape {
  int64_t nodes, ranks_per_node, ranks;
  bool operator<(const JobShape& b) const {
    return std::tie(nodes, ranks_per_node, ranks) < std::tie(b.nodes, b.ranks_per_node, b.ranks);
  }
};

struct SubmitLines {
  std::string sbatch, pjsub;
};

// Writes the list of decks of an array job; returns the lines that submit it.
SubmitLines array_job(const std::string& directory, const JobShape& layout,
                      const std::vector<std::string>& lines_of_rows) {
  std::string name = std::to_string(layout.nodes) + "x" + std::to_string(layout.ranks_per_node);
  std::string ntasks, ranks, pass_ranks;
  if (layout.ranks != layout.nodes * layout.ranks_per_node) {
    name += "-" + std::to_string(layout.ranks);
    ntasks = " --ntasks=" + std::to_string(layout.ranks);
    ranks = " RANKS=" + std::to_string(layout.ranks);
    pass_ranks = " -x RANKS";
  }
  std::string rows = "# Rows of " + std::to_string(layout.nodes) + " nodes with " +
                     std::to_string(layout.ranks_per_node) +
                     " ranks each, for jobscripts/array.slurm.\n";
  for (const std::string& line : lines_of_rows) rows += line + "\n";
  const std::string list = directory + "/" + name + ".rows";
  write_file(list, rows);
  const std::string count = std::to_string(lines_of_rows.size());
  const std::string nodes = std::to_string(layout.nodes);
  const std::string per_node = std::to_string(layout.ranks_per_node);
  SubmitLines lines;
  lines.sbatch = "rows " + name + " " + count + " --nodes=" + nodes +
                 " --ntasks-per-node=" + per_node + ntasks + " \"$@\" \"$scripts/array.slurm\" " +
                 shell_word(list) + "\n";
  lines.pjsub = "export ROWS=" + shell_word(list) + " RANKS_PER_NODE=" + per_node + ranks +
                "\npjm_rows " + name + " " + count + " -L node=" + nodes +
                " --mpi max-proc-per-node=" + per_node + " -x ROWS -x RANKS_PER_NODE" + pass_ranks +
                " -x GPTBENCH_OUTPUT -x GPTBENCH_JOBSCRIPTS \"$@\" \"$scripts/sites/fugaku.pjm\"\n";
  return lines;
}

}  // namespace

std::string write_decks(const Sweep& sweep, const std::vector<std::string>& left_out,
                        const std::string& given_directory) {
  const auto is_control = [](unsigned char c) { return c < 0x20 || c == 0x7f; };
  if (std::any_of(given_directory.begin(), given_directory.end(), is_control))
    throw Error(Exit::usage,
                "--write-decks: the name of the directory holds a line end or another control "
                "character, which a list of decks cannot hold; give another name");
  // Programs take a leading '-' for an option.
  const std::string directory = (given_directory[0] == '-' ? "./" : "") + given_directory;
  create_directories(directory);
  std::map<JobShape, std::vector<std::string>> layouts;
  int64_t written = 0;
  for (size_t r = 0; r < sweep.rows.size(); ++r) {
    const SweepRow& row = sweep.rows[r];
    if (sweep.is_pruned(row) || !left_out[r].empty()) continue;
    const std::string path = directory + "/" + row.name + ".in";
    write_file(path, row_deck_text(sweep, row));
    // xargs, which reads the list in array.slurm, takes quotes as a shell does.
    std::string line = shell_word(path);
    for (const std::string& setting : kept_layout(row)) line += " " + shell_word(setting);
    layouts[{row.nodes, row.ranks_per_node, row.ranks}].push_back(line);
    ++written;
  }
  std::string sbatch, pjsub;
  for (const auto& [layout, rows] : layouts) {
    const SubmitLines lines = array_job(directory, layout, rows);
    sbatch += lines.sbatch;
    pjsub += lines.pjsub;
  }
  const std::string script = directory + "/submit.sh";
  write_file(script, submit_script(directory, sbatch, pjsub));
  std::error_code error;  // a file system without permissions: sh runs it all the same
  std::filesystem::permissions(script,
                               std::filesystem::perms::owner_exec |
                                   std::filesystem::perms::group_exec |
                                   std::filesystem::perms::others_exec,
                               std::filesystem::perm_options::add, error);
  return std::to_string(written) + " decks in " + directory + "; sh " + shell_word(script) +
         " submits them as array jobs\n";
}

}  // namespace gptbench
