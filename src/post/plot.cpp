#include "post/plot.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/text.h"
#include "io/file_bytes.h"
#include "post/plot_text.h"

namespace gptbench {
namespace {

constexpr int no_gnuplot = 127;  // as a shell says it

// gnuplot commands that set terminal, page size and output file.
std::string page_of(const Plot& plot, const std::string& terminal, const std::string& suffix) {
  return "set terminal " + terminal + " size " + std::to_string(plot.width) + "," +
         std::to_string(plot.height) + " noenhanced\nset output '" + plot.name + "." + suffix +
         "'\n";
}

std::string script_of(const Plot& plot) {
  const char* const colours[num_linetypes] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                              "#e69f00", "#56b4e9", "#7f7f7f", "#f0e442",
                                              "#882255", "#44aa99", "#332288", "#bbbbbb"};
  std::string linetypes;
  for (size_t i = 0; i < num_linetypes; ++i)
    linetypes +=
        printed("set linetype %zu lc rgb '%s' lw 2 pt %d\n", i + 1, colours[i], linetype_marks[i]);
  return "# Drawn by gptpost; again with: gnuplot " + plot.name + ".gp\ndata = '" + plot.name +
         ".dat'\n"
         "set grid ytics lt 1 lw 1 lc rgb '#dddddd'\n"
         "set border 3\n"
         "set tics nomirror\n" +
         linetypes + page_of(plot, "svg font 'sans,14' background 'white'", "svg") + plot.commands +
         "unset label\n" + page_of(plot, "pngcairo font 'sans,11'", "png") + plot.commands;
}

// Runs `gnuplot NAME.gp` in the directory; by argument vector, never through a shell.
int run_gnuplot(const std::string& directory, const std::string& script) {
  const pid_t child = ::fork();
  if (child < 0) throw Error(Exit::io, std::string("cannot fork: ") + std::strerror(errno));
  if (child == 0) {
    const int nowhere = ::open("/dev/null", O_RDWR);
    if (nowhere >= 0) ::dup2(nowhere, STDIN_FILENO);
    if (::chdir(directory.c_str()) != 0) ::_exit(1);
    const char* const arguments[] = {"gnuplot", script.c_str(), nullptr};
    ::execvp(arguments[0], const_cast<char* const*>(arguments));
    ::_exit(no_gnuplot);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

void draw(const Plot& plot, const std::string& directory) {
  const int status = run_gnuplot(directory, plot.name + ".gp");
  if (status == no_gnuplot)
    throw Error(Exit::io, "gnuplot was not found (Debian: gnuplot-nox); data and scripts lie in " +
                              directory + " (*.dat, *.gp)");
  if (status != 0)
    throw Error(Exit::io, directory + "/" + plot.name + ".gp: gnuplot ended with status " +
                              std::to_string(status));
}

}  // namespace

std::string draw_plots(const Runs& runs, const std::string& kind, const std::string& directory,
                       const PlotOptions& options) {
  std::string report;
  std::vector<Plot> plots;
  for (const PlotKind& each : plot_kinds) {
    if (kind != "all" && kind != each.name) continue;
    const Plot plot = each.make(runs, options);
    if (plot.data.empty()) {
      if (kind != "all")
        throw Error(Exit::usage, "plot " + kind + ": no run has the figures for it");
      report += plot.name + ": no run has the figures for it\n";
      continue;
    }
    create_directories(directory);
    const std::string base = directory + "/" + plot.name;
    write_file(base + ".dat", plot.data);
    write_file(base + ".gp", script_of(plot));
    report += base + ".svg, .png, .dat, .gp\n";
    plots.push_back(plot);
  }
  // Without gnuplot the data of all plots are there.
  for (const Plot& plot : plots) draw(plot, directory);
  return report;
}

}  // namespace gptbench
