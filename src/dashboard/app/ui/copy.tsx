import { ActionIcon, Button, type ButtonProps, CopyButton, Group, Tooltip } from "@mantine/core";
import { useClipboard } from "@mantine/hooks";
import type { ReactNode } from "react";

import css from "./copy.module.css";
import { Icon } from "./icon.tsx";

export function Copy({ value, label }: { readonly value: string; readonly label: string }) {
  return (
    <CopyButton value={value}>
      {({ copied, copy }) => (
        <Tooltip label={copied ? "Copied" : label}>
          <ActionIcon
            variant="subtle"
            color={copied ? "teal" : "gray"}
            onClick={copy}
            aria-label={copied ? "Copied" : label}
          >
            <Icon name={copied ? "check" : "copy"} size={16} />
          </ActionIcon>
        </Tooltip>
      )}
    </CopyButton>
  );
}

interface CopyTextButtonProps extends ButtonProps {
  /** Text that the button copies, or a function that reads it and returns undefined if that fails. */
  readonly value: string | (() => Promise<string | undefined>);
  readonly children: string;
}

/** Time in ms for which a button says that it has copied. */
const COPIED_MS = 1_000;

/** Button with a text that copies a value. */
export function CopyTextButton({ value, children, ...button }: CopyTextButtonProps) {
  const { copied, copy } = useClipboard({ timeout: COPIED_MS });
  const copyText = async () => {
    const text = typeof value === "string" ? value : await value();
    if (text !== undefined) copy(text);
  };
  return (
    <Button
      {...button}
      onClick={() => void copyText()}
      leftSection={<Icon name={copied ? "check" : "copy"} size={16} />}
    >
      {copied ? "Copied" : children}
    </Button>
  );
}

/** Shows an id with a button that copies it. */
export function CopyableId({ id, label }: { readonly id: string; readonly label: string }) {
  return (
    <Group gap={4} wrap="nowrap">
      <code>{id}</code>
      <Copy value={id} label={label} />
    </Group>
  );
}

/** Shows text verbatim in a scrollable box, and never interprets it as markup. */
export function CodeBlock({
  label,
  code,
  shown,
  copied = code,
  wraps = false,
  isJson = false,
}: {
  readonly label: string;
  readonly code: string;
  /** The same text with colours. */
  readonly shown?: ReactNode;
  /** Text that the copy button copies, if it differs from the shown text. */
  readonly copied?: string;
  /** Wraps long lines. Use it for text from other systems, whose lines may have any length. */
  readonly wraps?: boolean;
  /** Colours the parts of JSON. */
  readonly isJson?: boolean;
}) {
  return (
    <figure>
      <Group justify="space-between" gap="xs">
        <figcaption>{label}</figcaption>
        <Copy value={copied} label={`Copy: ${label}`} />
      </Group>
      {/* The box is focusable, so that keyboard users can scroll it. */}
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex */}
      <pre className={css.code} data-wraps={wraps || undefined} tabIndex={0} aria-label={label}>
        {isJson && code.length <= COLOURED_CHARS ? jsonParts(code) : (shown ?? code)}
      </pre>
    </figure>
  );
}

/** Maximum length in characters of JSON that is coloured. The elements of longer JSON would make the page slow. */
const COLOURED_CHARS = 20_000;
const JSON_TOKEN =
  /("(?:\\.|[^"\\])*")(\s*:)?|\b(?:true|false|null)\b|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

/** Divides JSON into its text, with an element around each name and value. */
function jsonParts(code: string): ReactNode[] {
  const parts: ReactNode[] = [];
  let end = 0;
  for (const { 0: found, 1: text, 2: colon = "", index } of code.matchAll(JSON_TOKEN)) {
    const kind = text === undefined ? css.literal : css.text;
    parts.push(
      code.slice(end, index),
      <span key={index} className={colon === "" ? kind : css.name}>
        {text ?? found}
      </span>,
      colon,
    );
    end = index + found.length;
  }
  return [...parts, code.slice(end)];
}
