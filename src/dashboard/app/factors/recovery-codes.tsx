import { Alert, Button, Group, Stack } from "@mantine/core";

import { CopyTextButton } from "../ui/copy.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { Icon } from "../ui/icon.tsx";
import { saveAs } from "../ui/export-menu.tsx";

interface RecoveryCodesProps {
  readonly codes: readonly string[];
  readonly done: string;
  readonly onDone: () => void;
}

/** Shows recovery codes, which the API never returns again, and offers to copy and to save them. */
export function RecoveryCodes({ codes, done, onDone }: RecoveryCodesProps) {
  const text = codes.join("\n");
  const save = () => saveAs("recovery-codes.txt", "text/plain", [new Blob([text, "\n"])]);
  return (
    <Stack>
      <Alert color="yellow" icon={<Icon name="alert" />}>
        Keep these codes where you find them without your phone: on paper or in a password manager.
        They are shown only now. Each code signs you in once if you lose your other factors.
      </Alert>
      <ol className="mono" style={{ columns: "2 220px" }} aria-label="Recovery codes">
        {codes.map((code) => (
          <li key={code}>{code}</li>
        ))}
      </ol>
      <Group gap="xs">
        <CopyTextButton value={text} variant="default">
          Copy all
        </CopyTextButton>
        <Button variant="default" onClick={save}>
          Save as text
        </Button>
      </Group>
      <Group justify="flex-end">
        {/* Autofocus is needed because the control that had the focus was removed with the previous step. */}
        {/* oxlint-disable-next-line jsx-a11y/no-autofocus */}
        <Button onClick={onDone} data-autofocus autoFocus>
          {done}
        </Button>
      </Group>
    </Stack>
  );
}

interface RecoveryCodesDialogProps {
  /** Codes to show. The dialog is open while they are defined. */
  readonly codes: readonly string[] | undefined;
  readonly onClose: () => void;
}

/** Dialog with new recovery codes. Clicks outside do not close it, so that the user cannot lose the codes. */
export function RecoveryCodesDialog({ codes, onClose }: RecoveryCodesDialogProps) {
  return (
    <Dialog
      opened={codes !== undefined}
      onClose={onClose}
      title="Your recovery codes"
      withCloseButton={false}
      closeOnClickOutside={false}
      closeOnEscape={false}
      centered
    >
      {codes && <RecoveryCodes codes={codes} done="I have stored them" onDone={onClose} />}
    </Dialog>
  );
}
