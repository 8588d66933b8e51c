"""The report of the smoke study, opened in a headless browser."""

import base64
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), ""
)
OPTIONS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-sync",
    "--disable-background-networking",
    "--disable-component-update",
    "--virtual-time-budget=5000",
]

pytestmark = [
    pytest.mark.browser,
    pytest.mark.workflow,
    pytest.mark.skipif(not CHROMIUM, reason="no Chromium on PATH to open the report with"),
]


class VisibleText(HTMLParser):
    """The text of a page outside its scripts and styles, and the sources of its images."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden, self.words, self.images = 0, [], []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.hidden += tag in ("script", "style")
        if tag == "img":
            self.images.append(dict(attributes).get("src") or "")

    def handle_endtag(self, tag: str) -> None:
        self.hidden -= tag in ("script", "style")

    def handle_data(self, data: str) -> None:
        if not self.hidden:
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


@pytest.fixture(scope="module")
def report(smoke_run: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("report") / "report.html"
    command = [sys.executable, "-m", "snakemake", "--configfile", "config/smoke.yaml"]
    run = subprocess.run(
        [*command, "--report", str(path)], cwd=smoke_run, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr[-4000:]
    return path.read_text(encoding="utf-8")


def opened(report: str, folder: Path, clicks: str = "") -> VisibleText:
    """What a reader sees of the report after the page's script `clicks` has run."""
    page = folder / "page.html"
    end = report.rindex("</body>")
    script = f"<script>setTimeout(async () => {{{clicks}}}, 100)</script>"
    page.write_text(report[:end] + script + report[end:], encoding="utf-8")
    profile = folder / "profile"
    dump = subprocess.run(
        [CHROMIUM, *OPTIONS, f"--user-data-dir={profile}", "--dump-dom", page.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert dump.returncode == 0, dump.stderr[-2000:]
    seen = VisibleText()
    seen.feed(dump.stdout)
    return seen


def test_the_report_loads_nothing_from_elsewhere(report: str) -> None:
    assert not re.findall(r"<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)=.?https?:", report)


def test_the_claims_come_first(report: str, tmp_path: Path) -> None:
    text = opened(report, tmp_path).text
    assert "Start with the claims" in text
    categories = ["1. Claims", "2. Rank", "3. Spectrum", "4. Output error", "5. Controls"]
    categories.append("6. Tables")
    places = [text.index(category) for category in categories]
    assert places == sorted(places)


def test_every_result_has_a_caption(report: str, tmp_path: Path) -> None:
    """The reader's way to each: the result's page, where the caption stands as its description."""
    visit = """
        const seen = document.createElement("div");
        document.body.append(seen);
        for (const path of Object.keys(results)) {
            app.showResultInfo(path);
            await new Promise(resolve => setTimeout(resolve, 50));
            const page = document.querySelector("#app").innerText.toLowerCase();
            const start = page.indexOf("description");
            seen.append(`[${path}: ${start < 0 ? "" : page.slice(start, start + 80)}]`);
        }
    """
    text = opened(report, tmp_path, visit).text
    captions = dict(re.findall(r"\[(\S+): ([^\]]*)\]", text))
    assert {Path(path).name for path in captions} >= {"claims.svg", "two_token.svg", "summary.html"}
    assert all(caption.startswith("description") for caption in captions.values()), captions
    assert all(len(caption) > 60 for caption in captions.values()), captions


def test_a_click_on_the_claims_shows_their_page(
    report: str, smoke_run: Path, tmp_path: Path
) -> None:
    click = """
        const labelled = (tag, text) =>
            [...document.querySelectorAll(tag)].filter(item => item.textContent.trim() === text)[0];
        labelled("a", "1. Claims").click();
        await new Promise(resolve => setTimeout(resolve, 100));
        labelled("td", "all, on one page").parentElement.querySelector("a").click();
    """
    seen = opened(report, tmp_path, click)
    assert "all, on one page" in seen.text
    shown = [base64.b64decode(image.partition("base64,")[2]) for image in seen.images]
    assert (smoke_run / "results/smoke/figures/claims.svg").read_bytes() in shown
