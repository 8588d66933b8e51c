"""Plot how concentrated the spectra of a model's heads are: layer by head, for both masks."""

import argparse

import no_garbage_collection  # noqa: F401

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from figure_style import MASK_TITLES, MASKS, add_options, save, say, sheet
from whole_files import intact

QUANTITY = "cumulative_at_quarter"
MOST_NUMBERS = 20


def draw_heatmap(axes: Axes, table: pd.DataFrame, limits: tuple[float, float]) -> AxesImage:
    grid = table.pivot(index="layer", columns="head", values=QUANTITY)
    image = axes.imshow(
        grid.to_numpy(), cmap="cividis", vmin=limits[0], vmax=limits[1], aspect="auto"
    )
    axes.set_xticks(range(grid.shape[1]), grid.columns)
    axes.set_yticks(range(grid.shape[0]), grid.index)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    if grid.shape[1] <= MOST_NUMBERS:
        for (row, column), value in np.ndenumerate(grid.to_numpy()):
            dark = image.norm(value) < 0.5
            axes.text(
                column,
                row,
                f"{value:.2f}",
                ha="center",
                va="center",
                color="white" if dark else "black",
                fontsize=0.7 * matplotlib.rcParams["font.size"],
            )
    return image


def draw(heads: pd.DataFrame, font_size: float) -> Figure:
    table = heads[(heads.feature_map == "softmax") & (heads.normalization == "row")]
    if not table.empty:
        largest = table.sort_values(["N", "source"], ascending=[False, True]).iloc[0]
        table = table[(table.source == largest.source) & (table.N == largest.N)]
    figure, (panels,) = sheet(font_size, 75, 1, 2, sharey=True)
    panels[0].set_ylabel("layer")
    for axes, mask in zip(panels, MASKS, strict=True):
        axes.set_title(MASK_TITLES[mask])
        axes.set_xlabel("head")
        panel = table[table["mask"] == mask]
        if panel[QUANTITY].isna().all():
            say(axes, f"no singular values of {mask} softmax matrices of a model")
            continue
        image = draw_heatmap(axes, panel, (table[QUANTITY].min(), table[QUANTITY].max()))
        label = "share of the first quarter\nof the singular values"
    if panels[0].images or panels[1].images:
        figure.colorbar(image, ax=panels, label=label, aspect=30)
        figure.suptitle(
            f"softmax attention of {largest.source}, N = {largest.N}, mean over windows",
            fontsize="medium",
        )
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--heads", required=True, help="heads.csv")
    add_options(parser)
    args = parser.parse_args()
    save(draw(pd.read_csv(intact(args.heads)), args.font_size), args.output, args.dpi)


if __name__ == "__main__":
    main()
