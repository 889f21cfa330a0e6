import type { ReactNode } from "react";

interface TagProps {
  /** Of the library's colours. */
  readonly color?: string;
  /** In a lighter hand, where several stand beside each other. */
  readonly isQuiet?: boolean;
  readonly className?: string;
  readonly children: ReactNode;
}

/** Shows a word in a tinted box: a single plain element, because long lists have hundreds. */
export function Tag({ color = "gray", isQuiet = false, className = "", children }: TagProps) {
  const tint = `--mantine-color-${color}-light`;
  return (
    <span
      className={`tag ${className}`}
      data-quiet={isQuiet || undefined}
      style={{ background: `var(${tint})`, color: `var(${tint}-color)` }}
    >
      {children}
    </span>
  );
}
