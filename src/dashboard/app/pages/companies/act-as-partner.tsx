import { Button, Group, Stack, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useMutation } from "@tanstack/react-query";

import { answerOf } from "../../api/client.ts";
import { useApi } from "../../session/session.tsx";
import { CopyTextButton } from "../../ui/copy.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { ErrorNotice } from "../../ui/states.tsx";
import { Time } from "../../ui/time.tsx";

interface ActAsPartnerProps {
  readonly id: number;
  readonly name: string;
  readonly size?: "xs" | "sm";
}

/**
 * Button with which an operator opens the webhook pages of a partner and acts there as its owner. The audit log records
 * each link, so the link is created only after the operator has confirmed.
 */
export function ActAsPartner({ id, name, size = "sm" }: ActAsPartnerProps) {
  const { admin } = useApi();
  const [opened, { open, close: hide }] = useDisclosure();
  const { mutate, data, error, isPending, reset } = useMutation({
    mutationFn: () =>
      answerOf(
        admin.partners({ id })["portal-links"].post({ pages: ["webhooks"], access: "write" }),
      ),
  });
  const close = () => {
    hide();
    reset();
  };
  return (
    <>
      <Button variant="default" size={size} onClick={open}>
        Act as partner
      </Button>
      <Dialog opened={opened} onClose={close} title={`Act as ${name}`} centered>
        <Stack>
          <Text size="sm">
            A link opens the webhook pages of {name}, where you act as its owner, but cannot see
            secrets, add webhooks or change alerts. The audit log records all that you do.
          </Text>
          {error !== null && <ErrorNotice error={error} />}
          {data !== undefined && (
            <Text size="sm">
              The link works once and expires <Time at={data.expires_at} mayBeAhead />.
            </Text>
          )}
          <Group justify="flex-end" gap="sm">
            {data === undefined ? (
              <Button data-autofocus loading={isPending} onClick={() => mutate()}>
                Create link
              </Button>
            ) : (
              <>
                <CopyTextButton value={data.url} variant="default">
                  Copy link
                </CopyTextButton>
                <Button
                  component="a"
                  href={data.url}
                  target="_blank"
                  rel="noopener"
                  // Autofocus is needed because the button that had the focus was removed.
                  // oxlint-disable-next-line jsx-a11y/no-autofocus
                  autoFocus
                  // The link works once. Closes later, because the browser follows the link after the click.
                  onClick={() => setTimeout(close)}
                >
                  Open portal
                </Button>
              </>
            )}
          </Group>
        </Stack>
      </Dialog>
    </>
  );
}
