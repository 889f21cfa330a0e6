import { Text } from "@mantine/core";

import type { NewClientSecret } from "./data.ts";
import { ShownOnce } from "./shown-once.tsx";

interface ClientSecretProps {
  readonly client: NewClientSecret | undefined;
  readonly onClose: () => void;
}

/** Shown for a client that was given a secret; a public client has none. */
export function ClientSecret({ client, onClose }: ClientSecretProps) {
  return (
    <ShownOnce
      title="The client's secret"
      label="client_secret"
      secret={client?.client_secret ?? undefined}
      onClose={onClose}
    >
      <Text size="sm">
        For your server only, with the client_id <code>{client?.client_id}</code>. Never put it into
        a browser or a mobile app.
      </Text>
    </ShownOnce>
  );
}
