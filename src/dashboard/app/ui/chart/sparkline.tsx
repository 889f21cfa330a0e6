/** Numbers of a time step. */
interface Bar {
  readonly good: number;
  readonly bad: number;
}

const HEIGHT = 36;
const WIDTH = 5;
const GAP = 2;

/** Small bar chart without axes. `label` describes the numbers for screen readers. */
export function Sparkline({
  bars,
  label,
}: {
  readonly bars: readonly Bar[];
  readonly label: string;
}) {
  const most = Math.max(1, ...bars.map(({ good, bad }) => good + bad));
  const width = bars.length * (WIDTH + GAP);
  const heightOf = (value: number) => (value === 0 ? 0 : Math.max(2, (value / most) * HEIGHT));
  return (
    <svg
      className="sparkline"
      viewBox={`0 0 ${width} ${HEIGHT}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={label}
    >
      {bars.map(({ good, bad }, i) => {
        const x = i * (WIDTH + GAP);
        const [goodHeight, badHeight] = [heightOf(good), heightOf(bad)];
        const top = Math.max(0, HEIGHT - goodHeight - badHeight);
        const at = (y: number, height: number) => ({ x, y, height, width: WIDTH });
        return (
          // The index serves as the `key`, because a bar has no other identity.
          <g key={i}>
            <rect fill="var(--chart-grid)" {...at(HEIGHT - 1, 1)} />
            <rect fill="var(--chart-good)" {...at(HEIGHT - goodHeight, goodHeight)} />
            <rect fill="var(--chart-bad)" {...at(top, badHeight)} />
          </g>
        );
      })}
    </svg>
  );
}
