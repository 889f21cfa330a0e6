import { Button, Text } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";

import { answerOf } from "../../api/client.ts";
import { useApi } from "../../session/session.tsx";
import { SecretField } from "../../ui/secret.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { notify } from "../../ui/notify.ts";
import { Time } from "../../ui/time.tsx";

interface PartnerProps {
  readonly id: number;
  readonly name: string;
}

/** Button with which an operator opens the webhook pages of a partner and acts there as its owner. */
export function ActAsPartner({ id, name }: PartnerProps) {
  const { admin } = useApi();
  const { mutate, data, isPending, reset } = useMutation({
    mutationFn: () =>
      answerOf(
        admin.partners({ id })["portal-links"].post({ pages: ["webhooks"], access: "write" }),
      ),
    onError: (error) => notify.failed(error),
  });
  return (
    <>
      <Button variant="default" size="xs" loading={isPending} onClick={() => mutate()}>
        Act as partner
      </Button>
      <Dialog opened={data !== undefined} onClose={reset} title={`Act as ${name}`} centered>
        {data !== undefined && (
          <>
            <Text size="sm" mb="sm">
              The link opens the webhook pages as the owner. It works once and expires{" "}
              <Time at={data.expires_at} mayBeAhead />. Everything that you do is recorded in the
              audit log.
            </Text>
            <SecretField label="Portal link" value={data.url} />
            <Button component="a" href={data.url} target="_blank" rel="noopener" mt="sm">
              Open portal
            </Button>
          </>
        )}
      </Dialog>
    </>
  );
}
