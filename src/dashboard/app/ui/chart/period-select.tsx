import { Button, Group, NativeSelect } from "@mantine/core";
import { useState } from "react";

import type { ChartProps, SelectPeriod } from "./chart-series.ts";

interface PeriodSelectProps extends Pick<ChartProps, "times" | "step" | "formatTime"> {
  readonly onSelect: SelectPeriod;
}

/** Chooses a period of a chart without pointing at it. */
export function PeriodSelect({ times, step, formatTime, onSelect }: PeriodSelectProps) {
  const [chosen, setChosen] = useState<{ readonly since?: number; readonly until?: number }>({});
  const ends = times.map((time) => time + step);
  // What was chosen may not be in what is shown by now.
  const since = times.find((time) => time === chosen.since) ?? times[0] ?? 0;
  const until = ends.find((time) => time === chosen.until) ?? ends.at(-1) ?? 0;
  return (
    <details className="chart-table">
      <summary>Select a period</summary>
      <Group align="flex-end" gap="sm" mt="xs">
        <NativeSelect
          label="From"
          value={since}
          data={options(times, formatTime)}
          onChange={(event) => setChosen({ ...chosen, since: Number(event.currentTarget.value) })}
        />
        <NativeSelect
          label="To"
          value={until}
          data={options(ends, formatTime)}
          onChange={(event) => setChosen({ ...chosen, until: Number(event.currentTarget.value) })}
        />
        <Button variant="default" disabled={since >= until} onClick={() => onSelect(since, until)}>
          Select
        </Button>
      </Group>
    </details>
  );
}

const options = (times: readonly number[], formatTime: (seconds: number) => string) =>
  times.map((time) => ({ value: String(time), label: formatTime(time) }));
