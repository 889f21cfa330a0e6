import { VisuallyHidden } from "@mantine/core";

const OF = 5;

/** Shows filled and empty stars; screen readers say the number. */
export function Stars({ rate }: { readonly rate: number }) {
  return (
    <span className="stars">
      <VisuallyHidden>{`${rate} of ${OF} stars`}</VisuallyHidden>
      {Array.from({ length: OF }, (_, i) => (
        <svg key={i} viewBox="0 0 24 24" width={16} height={16} aria-hidden data-filled={i < rate}>
          <path d="m12 3 2.8 5.8 6.2.9-4.5 4.4 1 6.3-5.5-3-5.5 3 1-6.3L3 9.7l6.2-.9L12 3Z" />
        </svg>
      ))}
    </span>
  );
}
