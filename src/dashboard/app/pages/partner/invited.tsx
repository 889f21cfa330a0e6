import { ActionButton } from "../../ui/dialog.tsx";
import { type TeamUser, useTeamActions } from "./data.ts";

interface UserProps {
  readonly user: TeamUser;
}

/** Button that mails another invitation to a member of the team. */
export function ResendInvitation({ user: { id, name, email } }: UserProps) {
  const { inviteAgain } = useTeamActions();
  return (
    <ActionButton
      label="Resend invitation"
      fullLabel={`Resend invitation: ${name}`}
      onClick={() => inviteAgain(id)}
      done={`${email} is invited again. The previous link no longer works.`}
    />
  );
}
