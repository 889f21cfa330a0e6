import { Paper, Text } from "@mantine/core";
import { Fragment, type ReactNode } from "react";

import { ExactTime } from "../../ui/time.tsx";
import type { Subscription } from "./data/reads.ts";
import { kindTitle } from "./kinds.ts";

/** The settings for somebody who may not change them. */
export function SettingsShown({ subscription }: { readonly subscription: Subscription }) {
  return (
    <Paper withBorder p="lg" component="section" aria-label="Settings">
      <dl className="facts">
        {Object.entries(settingsOf(subscription)).map(([name, value]) => (
          <Fragment key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </Fragment>
        ))}
      </dl>
    </Paper>
  );
}

function settingsOf(one: Subscription): Readonly<Record<string, ReactNode>> {
  const isBatch = one.delivery_kind === "batch";
  return {
    Label: one.label,
    URL: <code>{one.webhook_url}</code>,
    Delivery: isBatch ? `Batch, every ${one.batch_interval_hours} h` : kindTitle(one.delivery_kind),
    ...(!isBatch && {
      Events: one.events === null ? "All" : one.events.join(", "),
      Body: one.payload_mode === "full" ? "In full" : "Ids alone",
      Order: one.ordering === "review" ? "Strict per review" : "Strict over all",
      "Our own mails": one.suppress_native_notifications ? "Left out" : "Sent",
    }),
    Secret: (
      <>
        Fingerprint <code>{one.secret_fingerprint}</code>
        <Text size="xs" c="dimmed">
          The secret itself is shown to the partner alone.
        </Text>
      </>
    ),
    ...(one.previous_secret_expires_at !== null && {
      "Former secret signs until": <ExactTime at={one.previous_secret_expires_at} />,
    }),
    Created: <ExactTime at={one.created_at} />,
    Changed: <ExactTime at={one.updated_at} />,
    Id: <code>{one.id}</code>,
  };
}
