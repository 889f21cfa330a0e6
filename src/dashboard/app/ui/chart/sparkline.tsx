import css from "./sparkline.module.css";

/** Numbers that one bar shows for a time step. */
interface Bar {
  readonly good: number;
  readonly bad: number;
}

const PLOT_HEIGHT = 36;
const BAR_WIDTH = 5;
const BAR_GAP = 2;
/** Largest width of a bar with its gap in px. */
const MAX_BAR_PX = 14;

/** Small bar chart without axes. `label` describes the numbers for screen readers. */
export function Sparkline({
  bars,
  label,
}: {
  readonly bars: readonly Bar[];
  readonly label: string;
}) {
  const most = Math.max(1, ...bars.map(({ good, bad }) => good + bad));
  const width = bars.length * (BAR_WIDTH + BAR_GAP);
  const heightOf = (value: number) => (value === 0 ? 0 : Math.max(2, (value / most) * PLOT_HEIGHT));
  return (
    <svg
      className={css.sparkline}
      viewBox={`0 0 ${width} ${PLOT_HEIGHT}`}
      preserveAspectRatio="none"
      // A few bars stay narrow instead of filling the width.
      style={{ maxWidth: bars.length * MAX_BAR_PX }}
      role="img"
      aria-label={label}
    >
      {bars.map(({ good, bad }, i) => {
        const x = i * (BAR_WIDTH + BAR_GAP);
        const [goodHeight, badHeight] = [heightOf(good), heightOf(bad)];
        const top = Math.max(0, PLOT_HEIGHT - goodHeight - badHeight);
        const at = (y: number, height: number) => ({ x, y, height, width: BAR_WIDTH });
        return (
          // The index serves as the `key`, because a bar has no other identity.
          <g key={i}>
            <rect fill="var(--chart-grid)" {...at(PLOT_HEIGHT - 1, 1)} />
            <rect fill="var(--chart-good)" {...at(PLOT_HEIGHT - goodHeight, goodHeight)} />
            <rect fill="var(--chart-bad)" {...at(top, badHeight)} />
          </g>
        );
      })}
    </svg>
  );
}
