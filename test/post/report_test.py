"""report_test.py static|browser FILE...: is each report one well-formed, legible page?

static: well-formed, complete in itself, text of results escaped, every picture there.
browser: opened in headless Chromium at two widths, light and dark: no overflow, no console message,
no request beyond the file, text with a contrast of at least 4.5. In print: fits the paper, light.
"""
import base64
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as tree
from pathlib import Path

TITLES = [
    "Loss over steps",
    "Time of each step",
    "Memory of the rank with the highest use, by class",
    "Time per step by kind of work",
    "Messages per step by axis and operation",
    "Memory map of rank 0",
]
COMPARISONS = ["Throughput", "Model FLOPs utilisation"]
failures = []


def check(condition, message):
    if not condition:
        failures.append(message)


def check_static(path):
    text = path.read_text(encoding="utf-8")
    page = tree.fromstring(text.replace("<!DOCTYPE html>", "", 1))
    tags = [element.tag for element in page.iter()]
    for tag in ("script", "link", "img", "iframe", "object", "image", "a"):
        check(tag not in tags, f"{path}: holds <{tag}>")
    for element in page.iter():
        for name, value in element.attrib.items():
            check(not name.startswith("on"), f"{path}: handler {name}")
            check(not re.match(r"\s*(https?:|//|data:|javascript:)", value), f"{path}: {name}={value}")
    check(not re.search(r"@import|url\((?!#)", text), f"{path}: a style loads something")
    check("\x1b" not in text, f"{path}: control characters")
    pictures = [e.get("aria-label") for e in page.iter("svg")]
    runs = {"three": 3, "ten": 10}.get(path.stem, 1)
    check(pictures.count("Memory map of rank 0") == runs, f"{path}: not {runs} memory maps")
    folded = [[e.get("aria-label") for e in run.iter("svg")] for run in page.iter("details") if run.get("class") == "run"]
    expected = [["Memory map of rank 0"], ["Timeline of one step", "Memory map of rank 0"]]
    check(folded == (expected if path.stem == "ten" else []), f"{path}: folded: {folded}")
    for title in TITLES + ([] if runs == 1 else COMPARISONS):
        check(title in pictures, f"{path}: no picture '{title}'")
    if path.stem != "one":
        check("Timeline of one step" in pictures, f"{path}: no timeline")
    if path.stem == "two":
        check(any(os.environ["GPTBENCH_TEST_NAME"] in (e.text or "") for e in page.iter("h1")),
              f"{path}: the run's name is not its heading")
    for svg in page.iter("svg"):
        check(any(e.tag == "title" and e.text for e in svg.iter()), f"{path}: no tooltips")
    identifiers = [e.get("id") for e in page.iter() if e.get("id")]
    check(len(identifiers) == len(set(identifiers)), f"{path}: an id occurs twice")
    whole = "".join(page.itertext())
    for word in ("VALID", "Keys that were set", "Checks", "Provenance", "loss_against_reference",
                 "name = 'made'"):
        check(word in whole, f"{path}: lacks '{word}'")


class Chromium:
    """A headless Chromium, spoken to through its debugging pipe."""

    def __init__(self, program):
        self.profile = tempfile.TemporaryDirectory()
        to_browser, self.out = os.pipe()
        self.incoming, from_browser = os.pipe()

        def pipes():  # the browser reads descriptor 3 and writes 4
            low, high = os.dup(to_browser), os.dup(from_browser)
            os.dup2(low, 3)
            os.dup2(high, 4)

        self.process = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe",
             "--disable-dev-shm-usage", f"--user-data-dir={self.profile.name}", "about:blank"],
            close_fds=False, preexec_fn=pipes, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        self.buffer, self.number, self.events, self.session = b"", 0, [], None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")

    def receive(self):
        while b"\0" not in self.buffer:
            part = os.read(self.incoming, 1 << 16)
            if not part:
                raise RuntimeError("Chromium ended")
            self.buffer += part
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def open(self, path):
        self.events = []
        self.call("Page.navigate", url=path.resolve().as_uri())
        while not any(e.get("method") == "Page.loadEventFired" for e in self.events):
            self.events.append(self.receive())

    def value(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(str(result["exceptionDetails"]))
        return result["result"].get("value")

    def close(self):
        self.process.terminate()
        self.process.wait(timeout=20)


# Text whose contrast to its ground is below 4.5. Text in a box of a picture has its ground's colour
# as its stroke.
LOW_CONTRAST = """(() => {
  const rgb = c => (c.match(/[\\d.]+/g) || []).map(Number);
  const part = v => (v /= 255, v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  const light = c => 0.2126 * part(c[0]) + 0.7152 * part(c[1]) + 0.0722 * part(c[2]);
  const ground = e => {
    for (; e; e = e.parentElement) {
      const c = rgb(getComputedStyle(e).backgroundColor);
      if (c.length == 3 || c[3] > 0) return c;
    }
    return [255, 255, 255];
  };
  const low = [];
  let texts = 0;
  for (const e of document.querySelectorAll('body *')) {
    if (e.tagName == 'title' || ![...e.childNodes].some(n => n.nodeType == 3 && n.data.trim())) continue;
    ++texts;
    const style = getComputedStyle(e), svg = e.tagName == 'text';
    const boxed = svg && /\\bt[0-7n]\\b/.test(e.getAttribute('class') || '');
    const a = light(rgb(svg ? style.fill : style.color)), b = light(boxed ? rgb(style.stroke) : ground(e));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) low.push(e.textContent.slice(0, 40) + ' ' + ratio.toFixed(2));
  }
  return [texts, low];
})()"""


def check_browser(browser, path):
    for width in (360, 1280):
        for scheme in ("light", "dark"):
            at = f"{path} at {width} px, {scheme}"
            browser.call("Emulation.setDeviceMetricsOverride", width=width, height=800,
                         deviceScaleFactor=1, mobile=width < 500)
            browser.call("Emulation.setEmulatedMedia",
                         features=[{"name": "prefers-color-scheme", "value": scheme}])
            browser.open(path)
            browser.value("document.querySelectorAll('details').forEach(d => d.open = true)")
            wide = browser.value("document.documentElement.scrollWidth")
            check(wide <= width, f"{at}: {wide} px wide")
            texts, low = browser.value(LOW_CONTRAST)
            check(texts > 50, f"{at}: only {texts} texts")
            check(not low, f"{at}: low contrast: {low[:5]}")
            for event in browser.events:
                method, params = event.get("method"), event.get("params", {})
                check(method not in ("Log.entryAdded", "Runtime.consoleAPICalled",
                                     "Runtime.exceptionThrown"), f"{at}: console: {params}")
                if method == "Network.requestWillBeSent":
                    url = params["request"]["url"]
                    check(url == path.resolve().as_uri(), f"{at}: requested {url}")


# Lines of each layout in the tables; widest first cell of a table of runs with short names.
LINES_OF_LAYOUTS = """[...document.querySelectorAll('td.line')].map(cell => {
  const range = document.createRange();
  range.selectNodeContents(cell);
  return new Set([...range.getClientRects()].map(line => line.top)).size;
})"""
FIRST_CELL = "document.querySelector('tbody td').offsetWidth"


def check_table(browser, path):
    browser.call("Emulation.setDeviceMetricsOverride", width=1000, height=800, deviceScaleFactor=1, mobile=False)
    browser.open(path)
    seen, folded = browser.value(FOLDED)
    check(seen == 0 and (folded > 0) == (path.name == "ten.html"), f"{path}: {seen} of {folded} folded pictures are open")
    lines = browser.value(LINES_OF_LAYOUTS)
    check(all(number == 1 for number in lines), f"{path}: layouts on {lines} lines")
    if path.name == "one.html":
        check(lines, f"{path}: no layout")
        check(browser.value(FIRST_CELL) < 100, f"{path}: the name 'made' takes {browser.value(FIRST_CELL)} px")


# Folded pictures of runs that can be seen, and all of them.
FOLDED = "(all => [all.filter(e => e.checkVisibility()).length, all.length])([...document.querySelectorAll('.run figure')])"

PAPER, LANDSCAPE = 718, 1047  # pixels: 19 and 27.7 cm, A4 with margins of 1 cm

# Numbers and short words of tables that stand on several lines.
BROKEN = """[...document.querySelectorAll('td')].filter(cell => {
  const text = cell.textContent, range = document.createRange();
  range.selectNodeContents(cell);
  return (cell.className == 'num' || !/\\s|^$/.test(text) && text.length < 13) &&
         new Set([...range.getClientRects()].map(line => line.top)).size > 1;
}).map(cell => cell.textContent)"""


def check_print(browser, path):
    at = f"{path} in print"
    browser.call("Emulation.setEmulatedMedia", media="print",
                 features=[{"name": "prefers-color-scheme", "value": "dark"}])
    browser.open(path)
    if browser.value("CSS.supports('selector(::details-content)')"):
        seen, folded = browser.value(FOLDED)
        check(seen == folded, f"{at}: {seen} of {folded} folded pictures are open")
    browser.value("document.querySelectorAll('details').forEach(d => d.open = true)")
    for width, broad in ((PAPER, "none"), (LANDSCAPE, "")):
        browser.call("Emulation.setDeviceMetricsOverride", width=width, height=1000, deviceScaleFactor=1,
                     mobile=False)
        browser.value(f"document.querySelectorAll('.broad').forEach(e => e.style.display = '{broad}')")
        wide, broken = browser.value("document.documentElement.scrollWidth"), browser.value(BROKEN)
        check(wide <= width, f"{at}: {wide} px wide")
        check(not broken, f"{at}, {width} px wide: lines break within {broken[:5]}")
    texts, low = browser.value(LOW_CONTRAST)
    check(texts > 50 and not low, f"{at}: {texts} texts, low contrast: {low[:5]}")
    ground = browser.value("getComputedStyle(document.body).backgroundColor")
    check(ground == "rgb(255, 255, 255)", f"{at}: ground {ground}")
    pdf = base64.b64decode(browser.call("Page.printToPDF")["data"])
    check(pdf.startswith(b"%PDF-") and b"%%EOF" in pdf[-16:], f"{at}: no PDF of {len(pdf)} bytes")
    browser.call("Emulation.setEmulatedMedia", media="")


def main():
    files = [Path(name) for name in sys.argv[2:]]
    if sys.argv[1] == "browser":
        program = next((p for p in map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))
                        if p), None)
        if program is None:
            print("skipped: Chromium is not installed (Debian: chromium)")
            sys.exit(77)
        browser = Chromium(program)
        try:
            for path in files:
                check_browser(browser, path)
                check_table(browser, path)
                check_print(browser, path)
        finally:
            browser.close()
    else:
        for path in files:
            check_static(path)
    for failure in failures:
        print(failure)
    sys.exit(1 if failures else 0)


main()
