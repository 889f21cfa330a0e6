interface Bar {
  readonly good: number;
  readonly bad: number;
}

const HEIGHT = 36;
const WIDTH = 5;
const GAP = 2;

/** Draws bars without axes, which show a course at a glance. `label` says the numbers. */
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
        const [goodHeight, badHeight] = [heightOf(good), heightOf(bad)];
        const x = i * (WIDTH + GAP);
        return (
          // A bar is identified by its place.
          <g key={i}>
            <rect className="spark-floor" x={x} y={HEIGHT - 1} width={WIDTH} height={1} />
            <rect
              className="spark-good"
              x={x}
              y={HEIGHT - goodHeight}
              width={WIDTH}
              height={goodHeight}
            />
            <rect
              className="spark-bad"
              x={x}
              y={Math.max(0, HEIGHT - goodHeight - badHeight)}
              width={WIDTH}
              height={badHeight}
            />
          </g>
        );
      })}
    </svg>
  );
}
