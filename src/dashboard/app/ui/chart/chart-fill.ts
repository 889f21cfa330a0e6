import type { Pattern } from "./chart-series.ts";

const TILE = 6;

/**
 * What a bar of a colour is filled with on a canvas. A pattern covers what is behind it: of a stack the first series is
 * drawn behind the others.
 */
export function fillOf(
  color: string,
  pattern: Pattern,
  background: string,
): string | CanvasPattern {
  if (pattern === "solid") return color;
  const tile = document.createElement("canvas");
  const ratio = window.devicePixelRatio;
  tile.width = tile.height = Math.round(TILE * ratio);
  const context = tile.getContext("2d");
  if (context === null) return color;
  context.scale(tile.width / TILE, tile.height / TILE);
  context.fillStyle = background;
  context.fillRect(0, 0, TILE, TILE);
  context.globalAlpha = 0.35;
  context.fillStyle = color;
  context.fillRect(0, 0, TILE, TILE);
  context.globalAlpha = 1;
  draw(context, pattern, color);
  return context.createPattern(tile, "repeat") ?? color;
}

function draw(context: CanvasRenderingContext2D, pattern: Pattern, color: string): void {
  context.strokeStyle = color;
  context.lineWidth = 2;
  context.beginPath();
  if (pattern === "dots") context.arc(TILE / 2, TILE / 2, 1.6, 0, 2 * Math.PI);
  if (pattern === "lines") line(context, [0, TILE / 2], [TILE, TILE / 2]);
  // The corners belong to the next tiles, too.
  if (pattern === "stripes")
    for (const shift of [-TILE, 0, TILE]) line(context, [shift, TILE], [shift + TILE, 0]);
  if (pattern === "dots") context.fill();
  else context.stroke();
}

type Point = readonly [x: number, y: number];

function line(context: CanvasRenderingContext2D, from: Point, to: Point): void {
  context.moveTo(...from);
  context.lineTo(...to);
}
