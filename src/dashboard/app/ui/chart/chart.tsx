import { Dimmed } from "../layout.tsx";
import {
  Button,
  Group,
  NativeSelect,
  Paper,
  Text,
  Title,
  useComputedColorScheme,
} from "@mantine/core";
import { useEffect, useEffectEvent, useMemo, useRef, useState } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";

import { DataTable } from "../data-table.tsx";
import { chartOptions } from "./chart-options.ts";
import {
  type ChartPlot,
  type ChartPoint,
  type ChartProps,
  type ChartSeries,
  type OnPoint,
  PLOT_PX,
  type PlotProps,
  type SelectPeriod,
  type TimeAxis,
  textOf,
} from "./chart-series.ts";
import css from "./chart.module.css";

/**
 * Draws values over time: plots below each other on one time axis, each with a legend. Offers the same values as a
 * table, for users who cannot see or point at the plots. Dragging over a plot selects a period.
 */
export function Chart({ title, plots, ...axis }: ChartProps) {
  const { times, onSelect } = axis;
  return (
    <Paper withBorder p="md" component="figure" aria-label={title}>
      {plots.map((plot) => (
        <PlotWithLegend key={plot.title} {...axis} {...plot} hasTimes={plot === plots.at(-1)} />
      ))}
      <Group gap="lg" align="flex-start">
        {onSelect && times.length > 0 && <PeriodSelect {...axis} onSelect={onSelect} />}
        <ChartTable {...axis} title={title} plots={plots} />
      </Group>
    </Paper>
  );
}

function PlotWithLegend(props: PlotProps) {
  const [point, setPoint] = useState<ChartPoint>();
  return (
    <div className={css.part}>
      <Group gap="4px 16px" mb={4}>
        <Title order={3} size="h5">
          {props.title}
        </Title>
        <Legend {...props} />
        {props.actions}
      </Group>
      <div className={css.area}>
        <Plot {...props} onPoint={setPoint} />
        {point && <Tip {...props} point={point} />}
      </div>
    </div>
  );
}

function Legend({ series }: Pick<ChartPlot, "series">) {
  return (
    <Group gap="4px 16px" component="ul" className={css.legend}>
      {series.map((one) => (
        <Text size="sm" component="li" key={one.label}>
          <SeriesKey {...one} />
          {one.label}{" "}
          <Text span fw={600} className="tabular">
            {one.summary}
          </Text>
        </Text>
      ))}
    </Group>
  );
}

function SeriesKey({ color, shape, pattern }: ChartSeries) {
  return (
    <span
      className={css.key}
      data-shape={shape}
      data-pattern={pattern}
      style={{ color: `var(${color})` }}
    />
  );
}

/** Shows the values at the time under the pointer, beside the pointer. */
function Tip({
  times,
  series,
  format,
  formatTime,
  point,
}: PlotProps & { readonly point: ChartPoint }) {
  const { index, left, isRight } = point;
  const time = times[index];
  if (time === undefined) return null;
  return (
    <div
      className={css.tip}
      data-tip
      aria-hidden
      style={isRight ? { right: `calc(100% - ${left - 12}px)` } : { left: left + 12 }}
    >
      <Dimmed>{formatTime(time)}</Dimmed>
      {series.map((one) => (
        <Text size="xs" key={one.label}>
          <SeriesKey {...one} />
          {one.label} <b className="tabular">{textOf(one.values[index], format)}</b>
        </Text>
      ))}
    </div>
  );
}

function Plot(props: PlotProps & { readonly onPoint: OnPoint }) {
  const { times, series, isStacked = false, height = PLOT_PX } = props;
  const host = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(undefined);
  const scheme = useComputedColorScheme("light");
  const data = useMemo(() => dataOf(times, series, isStacked), [times, series, isStacked]);
  const present = useEffectEvent(() => ({ props, data }));
  useEffect(() => plot.current?.setData(data), [data]);
  // Key of the plot. A change of the key or of the colour scheme builds a new plot. New values alone are set on the
  // existing plot.
  const shape = [...series.map(({ label, color }) => label + color), props.hasTimes].join();
  useEffect(() => {
    const element = host.current;
    if (element === null) return undefined;
    const options = chartOptions(() => present().props, element);
    const made = new uPlot(options, present().data, element);
    plot.current = made;
    const observer = new ResizeObserver(() =>
      made.setSize({ width: element.clientWidth, height: made.height }),
    );
    observer.observe(element);
    return () => {
      observer.disconnect();
      made.destroy();
      plot.current = undefined;
    };
    // The rule considers these dependencies unnecessary, but the plot reads colours and series only when it is built.
    // oxlint-disable-next-line react/exhaustive-effect-dependencies
  }, [scheme, shape]);
  const selects = props.onSelect !== undefined || undefined;
  return (
    <div ref={host} className={css.plot} style={{ height }} data-selects={selects} aria-hidden />
  );
}

/**
 * Converts the series to uPlot's data columns. In a stack, a column is the sum of its series and all following
 * series, because later series are drawn in front of earlier ones.
 */
function dataOf(
  times: readonly number[],
  series: readonly ChartSeries[],
  isStacked: boolean,
): uPlot.AlignedData {
  const columns = series.map(({ values }) => [...values]);
  if (isStacked)
    for (let i = columns.length - 2; i >= 0; i--)
      columns[i] = (columns[i] ?? []).map(
        (value, at) => (value ?? 0) + (columns[i + 1]?.[at] ?? 0),
      );
  return [[...times], ...columns];
}

/** Shows the values of a chart as a table. The rows are rendered only after the user has opened the table. */
function ChartTable({ title, times, plots, formatTime }: ChartProps) {
  const [isOpen, setOpen] = useState(false);
  const cells = plots.flatMap(({ series, format }) => series.map((one) => ({ ...one, format })));
  return (
    <details className={css.table} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Show as a table</summary>
      {isOpen && (
        // The box is focusable, so that keyboard users can scroll it.
        // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex
        <section className={css.scrollBox} tabIndex={0} aria-label={`${title}: table`}>
          <DataTable
            caption={title}
            rows={times.map((time, index) => ({ time, index }))}
            rowKey={({ time }) => time}
            columns={({ time, index }) => ({
              From: formatTime(time),
              ...Object.fromEntries(
                cells.map(({ label, values, format }) => [label, textOf(values[index], format)]),
              ),
            })}
          />
        </section>
      )}
    </details>
  );
}

interface PeriodSelectProps extends Omit<TimeAxis, "onSelect"> {
  readonly onSelect: SelectPeriod;
}

/** Selects a period of a chart by two fields, for users who cannot drag over the plot. */
function PeriodSelect({ times, step, formatTime, onSelect }: PeriodSelectProps) {
  const [chosen, setChosen] = useState<{ readonly since?: number; readonly until?: number }>({});
  const ends = times.map((time) => time + step);
  // Uses the start or end of the shown range if a previously chosen time is outside of the range.
  const since = times.find((time) => time === chosen.since) ?? times[0] ?? 0;
  const until = ends.find((time) => time === chosen.until) ?? ends.at(-1) ?? 0;
  return (
    <details className={css.table}>
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
