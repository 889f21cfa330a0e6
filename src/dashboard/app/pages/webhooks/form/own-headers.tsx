import { ActionIcon, Button, Group, PasswordInput, Stack, Text, TextInput } from "@mantine/core";
import { useState } from "react";

import { Choice } from "../../../ui/form.tsx";
import { counted } from "../../../ui/format.ts";
import { Icon } from "../../../ui/icon.tsx";
import { Dimmed, GuideLink, useFocusFallback } from "../../../ui/layout.tsx";
import {
  duplicateOf,
  hasMoved,
  movedHeaders,
  type OwnHeader,
  withoutValues,
} from "../data/draft.ts";
import type { SubscriptionProps } from "../data/reads.ts";
import { type FieldsProps, labelled } from "./endpoint-fields.tsx";
import css from "./form.module.css";

/** Maximum number of headers (contract 6.22). */
const MAX_HEADERS = 10;

interface HeaderRowsProps {
  readonly rows: readonly OwnHeader[];
  readonly onChange: (rows: readonly OwnHeader[]) => void;
  /** Validation error of the API about one of the headers. */
  readonly error: string | undefined;
}

/** Fields for the names and values of headers. */
export function HeaderRows({ rows, onChange, error }: HeaderRowsProps) {
  const container = useFocusFallback(String(rows.length));
  /** Index of the row that the user has added, whose field takes the focus. */
  const [added, setAdded] = useState<number>();
  const wrong = error === undefined ? undefined : rowOfError(rows, error);
  const edit = (index: number, change: Partial<OwnHeader>) =>
    onChange(rows.map((row, i) => (i === index ? { ...row, ...change } : row)));
  return (
    <section ref={container} tabIndex={-1}>
      <Stack gap="xs" align="flex-start">
        {rows.length > 0 && (
          <div className={css.header} data-titles aria-hidden>
            <span>Name</span>
            <span>Value</span>
          </div>
        )}
        {rows.map(({ name, value }, i) => (
          // The `key` is the index, because the user edits the name.
          <div key={i} className={css.header}>
            <TextInput
              aria-label={`Name of header ${i + 1}`}
              placeholder="X-Api-Key"
              autoComplete="off"
              spellCheck={false}
              // Autofocus is acceptable because the user has just added the row and will type its name next.
              // oxlint-disable-next-line jsx-a11y/no-autofocus
              autoFocus={added === i}
              value={name}
              onChange={(event) => edit(i, { name: event.currentTarget.value })}
              error={
                (i === wrong && labelled("The list of headers", error)) || duplicateOf(rows, i)
              }
            />
            <PasswordInput
              aria-label={`Value of header ${i + 1}`}
              placeholder="Value"
              autoComplete="new-password"
              value={value}
              visibilityToggleButtonProps={{ "aria-label": `Show header ${i + 1}` }}
              onChange={(event) => edit(i, { value: event.currentTarget.value })}
            />
            <ActionIcon
              variant="subtle"
              color="gray"
              size="lg"
              aria-label={`Remove header ${i + 1}`}
              onClick={() => onChange(rows.filter((_, other) => other !== i))}
            >
              <Icon name="trash" size={16} />
            </ActionIcon>
          </div>
        ))}
        <Button
          size="xs"
          variant="default"
          leftSection={<Icon name="plus" size={14} />}
          disabled={rows.length >= MAX_HEADERS}
          onClick={() => {
            setAdded(rows.length);
            onChange([...rows, { name: "", value: "" }]);
          }}
        >
          {rows.length === 0 ? "Add a header" : "Add another header"}
        </Button>
      </Stack>
    </section>
  );
}

/** Returns the index of the row that an error of the API names; the first row if it names none. */
function rowOfError(rows: readonly OwnHeader[], error: string): number {
  const index = /at index (\d+)/.exec(error)?.[1];
  if (index !== undefined) return Number(index);
  const words = error.split(/[\s,;:]+/);
  return Math.max(
    0,
    rows.findIndex(({ name }) => words.includes(name.trim())),
  );
}

/** Explains the use of headers of one's own. */
export function HeadersHint() {
  return (
    <>
      Every request also carries these headers, for example the key of a gateway in front of your
      endpoint. <GuideLink guide="receiving#behind-a-gateway">Guide</GuideLink>
    </>
  );
}

/** Optional headers of a new subscription. */
export function NewHeaders({ form }: FieldsProps) {
  return (
    <div>
      <Text size="sm" fw={500}>
        Your own headers (optional)
      </Text>
      <Dimmed mb="xs">
        <HeadersHint />
      </Dimmed>
      <HeaderRows
        rows={form.draft.headers ?? []}
        onChange={(headers) => form.edit({ headers })}
        error={form.reasonOf("headers")}
      />
    </div>
  );
}

/**
 * Fields for the headers of a subscription that gets another URL. The user enters them again or removes them. Renders
 * nothing if there are none.
 */
export function MovedHeaders({ form, subscription }: FieldsProps & SubscriptionProps) {
  const { header_names: names } = subscription;
  const error = form.reasonOf("headers");
  if (!hasMoved(form.draft, subscription) || (names.length === 0 && error === undefined))
    return null;
  const rows = movedHeaders(form.draft, subscription);
  return (
    <Stack gap="sm" className={css.nested}>
      <Text size="sm">
        This subscription sends {counted(names.length, "header")} of your own. Nobody can read their
        values, so they do not move to another URL by themselves.
      </Text>
      <Choice
        label="At the new URL"
        value={rows.length === 0 ? "remove" : "enter"}
        onChange={(choice) =>
          form.edit({ headers: choice === "remove" ? [] : withoutValues(names) })
        }
        options={[
          { value: "enter", label: "Enter the headers again" },
          { value: "remove", label: "Send no headers of your own" },
        ]}
      />
      {rows.length > 0 && (
        <HeaderRows rows={rows} onChange={(headers) => form.edit({ headers })} error={error} />
      )}
    </Stack>
  );
}

/** Names of the headers that a subscription sends, without their values. */
export function HeaderNames({ names }: { readonly names: readonly string[] }) {
  return (
    <ul className={css.names} aria-label="Headers that are sent">
      {names.map((name) => (
        <li key={name}>
          <Group gap="xs">
            <code>{name}</code>
            <Text span size="sm" c="dimmed">
              <span aria-hidden>••••••••</span> <span className="unseen">value hidden</span>
            </Text>
          </Group>
        </li>
      ))}
    </ul>
  );
}
