import { useQuery } from "@tanstack/react-query";

import { useCredentials } from "../../session/credentials.ts";
import { ActionButton } from "../../ui/dialog.tsx";
import { type TeamUser, useTeamActions } from "./data.ts";

interface UserProps {
  readonly user: TeamUser;
}

/**
 * Returns whether a user's email domain has single sign-on. Somebody without a password then needs no invitation to
 * sign in. Reads it once for each domain, and only for users without a password.
 */
export function useHasSso({ email, is_active: isActive, has_password: hasPassword }: TeamUser) {
  const { discover } = useCredentials();
  const { data } = useQuery({
    queryKey: ["sign-in-methods", email.split("@").at(-1)],
    queryFn: () => discover(email),
    enabled: isActive && !hasPassword,
    staleTime: Infinity,
  });
  return data?.sso === true;
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
