import { Text } from "@mantine/core";

import { isErased } from "../../api/erased.ts";
import { useSession } from "../../session/session.tsx";
import { ActiveSwitch, type ActiveSwitchProps } from "../../ui/dialog.tsx";

interface UserSwitchProps extends Pick<ActiveSwitchProps, "onSwitch" | "button"> {
  readonly user: {
    readonly id: number;
    readonly name: string;
    readonly email: string;
    readonly is_active: boolean;
  };
}

/** Button that deactivates or activates a user. An erased user has none, because the API never activates one again. */
export function UserSwitch({ user, ...props }: UserSwitchProps) {
  const { user: me } = useSession();
  const { id, name, email, is_active: isActive } = user;
  if (isErased(user)) return null;
  return (
    <ActiveSwitch
      isActive={isActive}
      name={name}
      done={`${name} ${isActive ? "deactivated and signed out" : "activated"}.`}
      {...props}
    >
      {isActive && me.id === id && (
        <Text size="sm" fw={600} mb="xs">
          This is your own account. You are signed out immediately and cannot undo this yourself.
        </Text>
      )}
      {isActive
        ? `${email} is signed out everywhere immediately and cannot sign in. Tokens and API keys are revoked permanently. Responses and notes stay.`
        : `${email} can sign in again. Previous tokens and API keys stay revoked.`}
    </ActiveSwitch>
  );
}
